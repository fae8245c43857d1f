#include "core/image/window/crop.h"

#include <cmath>
#include <set>
#include <vector>

#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

CounterRng Rng(int record) { return CounterRng(/*seed=*/17, /*epoch=*/2, record, /*purpose=*/1); }

TEST(CropTest, RandomResizedCropStaysInsideAndWithinItsRanges) {
  const RandomResizedCropOptions options;
  for (int record = 0; record < 20000; ++record) {
    CounterRng rng = Rng(record);
    const CropRect crop = RandomResizedCrop(options, 375, 500, rng);
    ASSERT_THAT(CheckCropInside(crop, 375, 500), IsOk());
    const double area = static_cast<double>(crop.height) * crop.width / (375 * 500);
    const double aspect = static_cast<double>(crop.width) / crop.height;
    ASSERT_GT(area, 0.08 * 0.98);  // Rounding to whole pixels changes area and aspect.
    ASSERT_LE(area, 1.0);
    ASSERT_GT(aspect, 3.0 / 4.0 * 0.98);
    ASSERT_LT(aspect, 4.0 / 3.0 * 1.02);
  }
}

// Nearly every first draw fits into a square image, so the distributions can be checked directly.
TEST(CropTest, AreaIsUniformAndAspectLogUniform) {
  const RandomResizedCropOptions options = {.min_area = 0.1f, .max_area = 0.5f};
  constexpr int kDraws = 40000;
  int area_quarters[4] = {};
  int aspect_quarters[4] = {};
  double sum_y = 0, sum_x = 0;
  for (int record = 0; record < kDraws; ++record) {
    CounterRng rng = Rng(record);
    const CropRect crop = RandomResizedCrop(options, 4000, 4000, rng);
    const double area = static_cast<double>(crop.height) * crop.width / (4000.0 * 4000.0);
    const double log_aspect = std::log(static_cast<double>(crop.width) / crop.height);
    ++area_quarters[std::min(3, static_cast<int>((area - 0.1) / 0.1))];
    const double position = (log_aspect / std::log(4.0 / 3.0) + 1) / 2;
    ++aspect_quarters[std::max(0, std::min(3, static_cast<int>(position * 4)))];
    sum_y += static_cast<double>(crop.y) / (4000 - crop.height);
    sum_x += static_cast<double>(crop.x) / (4000 - crop.width);
  }
  const double sigma = std::sqrt(kDraws * 0.25 * 0.75);
  for (int quarter = 0; quarter < 4; ++quarter) {
    EXPECT_NEAR(area_quarters[quarter], kDraws / 4, 4 * sigma) << quarter;
    EXPECT_NEAR(aspect_quarters[quarter], kDraws / 4, 4 * sigma) << quarter;
  }
  EXPECT_NEAR(sum_y / kDraws, 0.5, 4 * std::sqrt(1.0 / 12 / kDraws));
  EXPECT_NEAR(sum_x / kDraws, 0.5, 4 * std::sqrt(1.0 / 12 / kDraws));
}

TEST(CropTest, RandomResizedCropIsAFunctionOfTheDraws) {
  CounterRng a = Rng(5);
  CounterRng b = Rng(5);
  CounterRng c = Rng(6);
  const CropRect crop = RandomResizedCrop({}, 375, 500, a);
  EXPECT_EQ(crop, RandomResizedCrop({}, 375, 500, b));
  EXPECT_NE(crop, RandomResizedCrop({}, 375, 500, c));
}

// Pins the draws, because another order or rounding would move every training crop.
TEST(CropTest, RandomResizedCropsArePinned) {
  std::vector<CropRect> crops;
  for (int record = 0; record < 3; ++record) {
    CounterRng rng = Rng(record);
    crops.push_back(RandomResizedCrop({}, 375, 500, rng));
  }
  EXPECT_EQ(crops[0], (CropRect{66, 23, 210, 177}));
  EXPECT_EQ(crops[1], (CropRect{33, 18, 312, 394}));
  EXPECT_EQ(crops[2], (CropRect{6, 130, 362, 364}));
}

TEST(CropTest, EveryOffsetCanBeDrawn) {
  std::set<int> ys, xs;
  const RandomResizedCropOptions options = {
      .min_area = 0.25f, .max_area = 0.25f, .min_aspect = 1.0f, .max_aspect = 1.0f};
  for (int record = 0; record < 500; ++record) {
    CounterRng rng = Rng(record);
    const CropRect crop = RandomResizedCrop(options, 8, 8, rng);
    EXPECT_EQ(crop.height, 4);
    EXPECT_EQ(crop.width, 4);
    ys.insert(crop.y);
    xs.insert(crop.x);
  }
  EXPECT_EQ(ys, (std::set<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(xs, (std::set<int>{0, 1, 2, 3, 4}));
}

TEST(CropTest, FallbackIsTheLargestCentredCropOfAFittingAspect) {
  const RandomResizedCropOptions whole_area = {.min_area = 1.0f, .max_area = 1.0f};
  CounterRng rng = Rng(0);
  EXPECT_EQ(RandomResizedCrop(whole_area, 100, 1000, rng), (CropRect{0, 433, 100, 133}));
  EXPECT_EQ(RandomResizedCrop(whole_area, 1000, 100, rng), (CropRect{433, 0, 133, 100}));
  // Aspect 1.2 is in the range, but no drawn aspect fits the full area, so the crop is the whole
  // image.
  const RandomResizedCropOptions wide = {
      .min_area = 1.0f, .max_area = 1.0f, .min_aspect = 1.1f, .max_aspect = 1.3f, .attempts = 1};
  EXPECT_EQ(RandomResizedCrop(wide, 100, 120, rng), (CropRect{0, 0, 100, 120}));
}

TEST(CropTest, TinyImagesGiveACropOfAtLeastOnePixel) {
  for (int height = 1; height <= 4; ++height) {
    for (int width = 1; width <= 4; ++width) {
      for (int record = 0; record < 200; ++record) {
        CounterRng rng = Rng(record);
        const CropRect crop = RandomResizedCrop({}, height, width, rng);
        ASSERT_THAT(CheckCropInside(crop, height, width), IsOk());
      }
    }
  }
}

TEST(CropTest, RandomResizedCropOptionsAreChecked) {
  EXPECT_THAT(CheckRandomResizedCrop({}), IsOk());
  EXPECT_THAT(CheckRandomResizedCrop({.min_area = 0}), StatusIs(kInvalid, HasSubstr("area")));
  EXPECT_THAT(CheckRandomResizedCrop({.max_area = 1.01f}), StatusIs(kInvalid, HasSubstr("area")));
  EXPECT_THAT(CheckRandomResizedCrop({.min_area = 0.6f, .max_area = 0.5f}),
              StatusIs(kInvalid, AllOf(HasSubstr("0.6"), HasSubstr("0.5"))));
  EXPECT_THAT(CheckRandomResizedCrop({.min_area = NAN}), StatusIs(kInvalid, HasSubstr("area")));
  EXPECT_THAT(CheckRandomResizedCrop({.min_aspect = 0}), StatusIs(kInvalid, HasSubstr("aspect")));
  EXPECT_THAT(CheckRandomResizedCrop({.max_aspect = 0.5f}),
              StatusIs(kInvalid, HasSubstr("aspect")));
  EXPECT_THAT(CheckRandomResizedCrop({.max_aspect = INFINITY}),
              StatusIs(kInvalid, HasSubstr("aspect")));
  EXPECT_THAT(CheckRandomResizedCrop({.attempts = 0}),
              StatusIs(kInvalid, HasSubstr("attempts is 0")));
  EXPECT_THAT(CheckRandomResizedCrop({.attempts = 1001}),
              StatusIs(kInvalid, HasSubstr("attempts is 1001")));
}

TEST(CropTest, CentreCropFollowsTheTpuRule) {
  EXPECT_EQ(CentreCrop(224.0f / 256.0f, 375, 500), (CropRect{24, 86, 328, 328}));
  EXPECT_EQ(CentreCrop(1.0f, 375, 500), (CropRect{0, 63, 375, 375}));
  EXPECT_EQ(CentreCrop(0.5f, 10, 7), (CropRect{4, 2, 3, 3}));
  EXPECT_EQ(CentreCrop(0.01f, 3, 3), (CropRect{1, 1, 1, 1}));
  for (int height = 1; height < 40; ++height) {
    for (int width = 1; width < 40; ++width) {
      ASSERT_THAT(CheckCropInside(CentreCrop(0.875f, height, width), height, width), IsOk());
    }
  }
}

TEST(CropTest, EmptyCropsAndCropsOutsideTheImageAreRefusedByName) {
  EXPECT_THAT(CheckCropInside({0, 0, 3, 4}, 3, 4), IsOk());
  EXPECT_THAT(CheckCropInside({1, 0, 3, 4}, 3, 4),
              StatusIs(kInvalid, AllOf(HasSubstr("crop of 3x4"), HasSubstr("(y 1, x 0)"),
                                       HasSubstr("image of 3x4"))));
  EXPECT_THAT(CheckCropInside({0, 0, 0, 4}, 3, 4), StatusIs(kInvalid, HasSubstr("empty")));
  EXPECT_THAT(CheckCropInside({0, -1, 1, 1}, 3, 4), StatusIs(kInvalid, HasSubstr("x -1")));
  EXPECT_EQ(WholeImage(3, 4), (CropRect{0, 0, 3, 4}));
}

TEST(CropTest, FlipIsFair) {
  int flips = 0;
  for (int record = 0; record < 10000; ++record) {
    CounterRng rng = Rng(record);
    flips += DrawFlip(rng);
  }
  EXPECT_NEAR(flips, 5000, 4 * 50);
}

}  // namespace
}  // namespace systole
