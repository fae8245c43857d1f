#include "core/image/scaled_crop.h"

#include "core/random/counter_rng.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

// The values are worked out by hand.
TEST(ScaledCropTest, EdgesAreDividedAndNotRounded) {
  EXPECT_EQ(ScaleCrop({.y = 13, .x = 8, .height = 50, .width = 67}, 10, 16),
            (ScaledCrop{.scale = JpegScale::kQuarter,
                        .rect = {.y = 3, .x = 2, .height = 13, .width = 17},
                        .rows = {.pixels = 13, .begin = 0.25f, .extent = 12.5f},
                        .columns = {.pixels = 17, .begin = 0, .extent = 16.75f}}));
}

TEST(ScaledCropTest, ScalesDownAsFarAsBothSidesReachTheOutputSize) {
  const auto scale_of = [](int height, int width) {
    return ScaleCrop({.height = height, .width = width}, 10, 20).scale;
  };
  EXPECT_EQ(scale_of(10, 20), JpegScale::kFull);
  EXPECT_EQ(scale_of(19, 1000), JpegScale::kFull);
  EXPECT_EQ(scale_of(1000, 39), JpegScale::kFull);
  EXPECT_EQ(scale_of(20, 40), JpegScale::kHalf);
  EXPECT_EQ(scale_of(79, 80), JpegScale::kQuarter);
  EXPECT_EQ(scale_of(80, 159), JpegScale::kQuarter);
  EXPECT_EQ(scale_of(80, 160), JpegScale::kEighth);
  EXPECT_EQ(scale_of(16000, 16000), JpegScale::kEighth);
  EXPECT_EQ(scale_of(5, 5), JpegScale::kFull);
}

TEST(ScaledCropTest, ACropOfFullScaleIsItself) {
  const CropRect crop = {.y = 3, .x = 5, .height = 30, .width = 31};
  EXPECT_EQ(ScaleCrop(crop, 20, 20),
            (ScaledCrop{.rect = crop, .rows = WholeSide(30), .columns = WholeSide(31)}));
}

// Checks one side of a crop. The crop has the pixels [begin, begin + size) of that side, and the
// smaller image has `smaller` pixels. `first` and `pixels` are those of ScaledCrop::rect.
void CheckSide(int begin, int size, JpegScale scale, int smaller, int first, int pixels,
               const SourceSide& side) {
  const auto divisor = static_cast<float>(static_cast<int>(scale));
  ASSERT_GE(first, 0);
  ASSERT_LE(first + pixels, smaller);
  ASSERT_EQ(side.pixels, pixels);
  ASSERT_GE(side.begin, 0);
  ASSERT_LT(side.begin, 1);
  ASSERT_LE(side.begin + side.extent, static_cast<float>(pixels));
  ASSERT_EQ((static_cast<float>(first) + side.begin) * divisor, static_cast<float>(begin));
  ASSERT_EQ(side.extent * divisor, static_cast<float>(size));
}

TEST(ScaledCropTest, LiesInTheSmallerImageAndHoldsTheCrop) {
  CounterRng rng(/*seed=*/9, 0, 0, 0);
  const auto draw = [&rng](int from, int to) {
    return static_cast<int>(rng.UniformInt(from, to + 1));
  };
  for (int i = 0; i < 20000 && !testing::Test::HasFatalFailure(); ++i) {
    const int height = draw(1, 65500);
    const int width = draw(1, 65500);
    CropRect crop;
    crop.height = draw(1, height);
    crop.width = draw(1, width);
    crop.y = draw(0, height - crop.height);
    crop.x = draw(0, width - crop.width);
    const ScaledCrop scaled = ScaleCrop(crop, draw(1, 300), draw(1, 300));
    CheckSide(crop.y, crop.height, scaled.scale, ScaledSide(height, scaled.scale), scaled.rect.y,
              scaled.rect.height, scaled.rows);
    CheckSide(crop.x, crop.width, scaled.scale, ScaledSide(width, scaled.scale), scaled.rect.x,
              scaled.rect.width, scaled.columns);
  }
}

}  // namespace
}  // namespace systole
