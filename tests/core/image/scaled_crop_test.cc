#include "core/image/scaled_crop.h"

#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
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

TEST(ScaledCropTest, LiesInTheSmallerImageAndHoldsTheCrop) {
  CounterRng rng(/*seed=*/9, 0, 0, 0);
  const auto draw = [&rng](int from, int to) {
    return static_cast<int>(rng.UniformInt(from, to + 1));
  };
  for (int i = 0; i < 20000; ++i) {
    const int image = draw(1, 65500);
    CropRect crop;
    crop.height = crop.width = draw(1, image);
    crop.y = draw(0, image - crop.height);
    crop.x = draw(0, image - crop.width);
    const ScaledCrop scaled = ScaleCrop(crop, draw(1, 300), draw(1, 300));
    const int divisor = static_cast<int>(scaled.scale);
    ASSERT_THAT(CheckCropInside(scaled.rect, ScaledSide(image, scaled.scale),
                                ScaledSide(image, scaled.scale))
                    .ok(),
                true);
    ASSERT_EQ(scaled.rows.pixels, scaled.rect.height);
    ASSERT_LE(scaled.rows.begin + scaled.rows.extent, static_cast<float>(scaled.rows.pixels));
    ASSERT_EQ((static_cast<float>(scaled.rect.y) + scaled.rows.begin) * static_cast<float>(divisor),
              static_cast<float>(crop.y));
    ASSERT_EQ(scaled.rows.extent * static_cast<float>(divisor), static_cast<float>(crop.height));
    ASSERT_LT(scaled.rows.begin, 1);
  }
}

}  // namespace
}  // namespace systole
