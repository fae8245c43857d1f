#include "client/cli/flowers/canvas.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(CanvasTest, SineAndCosineAreCloseToTheTrueOnes) {
  for (float turns = -3.0f; turns <= 3.0f; turns += 0.001f) {
    const double radians = 2 * std::numbers::pi * turns;
    EXPECT_NEAR(SinTurns(turns), std::sin(radians), 0.0012) << turns;
    EXPECT_NEAR(CosTurns(turns), std::cos(radians), 0.0012) << turns;
  }
}

TEST(CanvasTest, AngleIsCloseToTheTrueOneAndInOneTurn) {
  for (int degrees = 0; degrees < 360; ++degrees) {
    const double radians = degrees * std::numbers::pi / 180;
    const float angle = AngleTurns(static_cast<float>(3 * std::sin(radians)),
                                   static_cast<float>(3 * std::cos(radians)));
    double off = angle - degrees / 360.0;
    off -= std::round(off);  // 0.9999 turns is close to 0.
    EXPECT_NEAR(off, 0, 0.001) << degrees;
    EXPECT_GE(angle, 0.0f) << degrees;
    EXPECT_LT(angle, 1.0f) << degrees;
  }
  EXPECT_EQ(AngleTurns(0, 0), 0.0f);
}

TEST(CanvasTest, SpeckleIsSpreadOverTheUnitInterval) {
  double sum = 0;
  for (uint32_t i = 0; i < 10'000; ++i) {
    const float value = Speckle(i, 5, 9);
    ASSERT_GE(value, 0.0f);
    ASSERT_LT(value, 1.0f);
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.015);  // This is five standard deviations of the mean.
  EXPECT_NE(Speckle(1, 2, 3), Speckle(3, 2, 1));
}

TEST(CanvasTest, ShapesBeyondTheEdgesCanBeDrawn) {
  Canvas canvas(20, 10);
  canvas.DrawDisc({-5, -5}, 12, 3, {1, 1, 1}, 1);
  canvas.DrawDisc({500, 500}, 5, 1, {1, 1, 1}, 1);
  canvas.DrawLeaf({-50, 5}, {70, 5}, 30, 0.2f, {0, 1, 0}, {0, 0, 1});
  canvas.DrawStem({10, -30}, {10, 300}, 2, -0.1f, {1, 0, 0});
  EXPECT_EQ(canvas.ToBytes(0, 0).size(), 20u * 10 * 3);
}

TEST(CanvasTest, DiscCoversItsMiddleAndNotBeyondItsEdge) {
  Canvas canvas(21, 21);
  canvas.DrawDisc({10, 10}, 5, 1, {0.5f, 0.25f, 1}, 1);
  EXPECT_EQ(canvas.at(10, 10).g, 0.25f);
  EXPECT_EQ(canvas.at(10, 17).b, 0.0f);
}

TEST(CanvasTest, BlurKeepsAnEvenPictureAndSpreadsASpot) {
  Canvas even(9, 7);
  for (int y = 0; y < 7; ++y) {
    for (int x = 0; x < 9; ++x) even.at(x, y) = {0.5f, 0.5f, 0.5f};
  }
  even.Blur(2);
  EXPECT_NEAR(even.at(0, 0).r, 0.5f, 1e-5);
  EXPECT_NEAR(even.at(8, 6).b, 0.5f, 1e-5);

  Canvas spot(9, 9);
  spot.at(4, 4) = {1, 1, 1};
  spot.Blur(1);
  EXPECT_NEAR(spot.at(4, 4).r, 1.0f / 9, 1e-5);  // Two box passes of 3: (3/9)^2 in the middle.
  EXPECT_NEAR(spot.at(3, 4).r, spot.at(4, 5).r, 1e-6);
  EXPECT_NEAR(spot.at(0, 4).r, 0, 1e-6);
  spot.Blur(0);
  EXPECT_NEAR(spot.at(4, 4).r, 1.0f / 9, 1e-5);
}

TEST(CanvasTest, BytesAreClampedAndNoiseHasTheSpreadAskedFor) {
  Canvas canvas(100, 100);
  canvas.at(0, 0) = {-1, 2, 0.5f};
  const std::vector<uint8_t> clean = canvas.ToBytes(0, 1);
  EXPECT_EQ(clean[0], 0);
  EXPECT_EQ(clean[1], 255);
  EXPECT_EQ(clean[2], 128);

  for (int y = 0; y < 100; ++y) {
    for (int x = 0; x < 100; ++x) canvas.at(x, y) = {0.5f, 0.5f, 0.5f};
  }
  const std::vector<uint8_t> noisy = canvas.ToBytes(0.04f, 1);
  double sum = 0, squares = 0;
  for (const uint8_t value : noisy) {
    sum += value;
    squares += double{1} * value * value;
  }
  const double mean = sum / noisy.size();
  EXPECT_NEAR(mean, 127.5, 0.5);
  EXPECT_NEAR(std::sqrt(squares / noisy.size() - mean * mean), 0.04 * 255, 0.3);
  EXPECT_NE(noisy, canvas.ToBytes(0.04f, 2));
}

}  // namespace
}  // namespace systole
