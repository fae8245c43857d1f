#include "core/image/window/distorted_box.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

CropRect BoxOf(const DistortedBoxOptions& options, int height, int width, int record) {
  CounterRng rng(/*seed=*/3, /*epoch=*/1, record, /*purpose=*/1);
  CounterBoxDraws draws(rng);
  return DistortedBox(options, height, width, draws);
}

TEST(DistortedBoxTest, BoxesLieInsideAndWithinTheirRanges) {
  const DistortedBoxOptions options;
  for (int record = 0; record < 20000; ++record) {
    const CropRect box = BoxOf(options, 375, 500, record);
    ASSERT_THAT(CheckCropInside(box, 375, 500), IsOk());
    const double area = static_cast<double>(box.height) * box.width / (375 * 500);
    const double aspect = static_cast<double>(box.width) / box.height;
    ASSERT_GE(area, 0.1);  // min_object_covered.
    ASSERT_LE(area, 1.0);
    if (box == WholeImage(375, 500)) continue;
    ASSERT_GT(aspect, 0.75 * 0.99);  // Rounding to whole columns changes the aspect.
    ASSERT_LT(aspect, 1.33 * 1.01);
  }
}

// The aspect and the height are uniform. torchvision's aspect is log-uniform, and its area is
// uniform.
TEST(DistortedBoxTest, AspectAndHeightAreUniform) {
  const DistortedBoxOptions options = {
      .ranges = {.min_area = 0.04f, .max_area = 0.16f, .min_aspect = 0.5f, .max_aspect = 2.0f},
      .min_object_covered = 0.0f};
  constexpr int kDraws = 40000;
  int aspect_quarters[4] = {};
  int height_quarters[4] = {};
  for (int record = 0; record < kDraws; ++record) {
    const CropRect box = BoxOf(options, 4000, 4000, record);
    const double aspect = static_cast<double>(box.width) / box.height;
    ++aspect_quarters[std::clamp(static_cast<int>((aspect - 0.5) / 1.5 * 4), 0, 3)];
    // A box of this aspect and of area A has the height sqrt(A / aspect). The largest area gives
    // twice the height of the smallest area.
    const double smallest = std::sqrt(0.04 * 4000 * 4000 / aspect);
    ++height_quarters[std::clamp(static_cast<int>((box.height / smallest - 1) * 4), 0, 3)];
  }
  const double sigma = std::sqrt(kDraws * 0.25 * 0.75);
  for (int quarter = 0; quarter < 4; ++quarter) {
    EXPECT_NEAR(aspect_quarters[quarter], kDraws / 4.0, 4 * sigma) << quarter;
    EXPECT_NEAR(height_quarters[quarter], kDraws / 4.0, 4 * sigma) << quarter;
  }
}

TEST(DistortedBoxTest, TheLastOffsetIsNeverDrawnAndEveryOtherIs) {
  const DistortedBoxOptions options = {
      .ranges = {.min_area = 0.25f, .max_area = 0.25f, .min_aspect = 1.0f, .max_aspect = 1.0f}};
  std::vector<int> ys(5);
  std::vector<int> xs(5);
  for (int record = 0; record < 500; ++record) {
    const CropRect box = BoxOf(options, 8, 8, record);
    ASSERT_EQ(box.height, 4);
    ASSERT_EQ(box.width, 4);
    ++ys[static_cast<size_t>(box.y)];
    ++xs[static_cast<size_t>(box.x)];
  }
  for (const auto& counts : {ys, xs}) {
    for (size_t offset = 0; offset < 4; ++offset) EXPECT_GT(counts[offset], 60) << offset;
    EXPECT_EQ(counts[4], 0);
  }
}

TEST(DistortedBoxTest, FallsBackToTheWholeImageIfNoBoxMeetsTheOptions) {
  const DistortedBoxOptions wide = {
      .ranges = {.min_area = 0.9f, .max_area = 1.0f, .min_aspect = 3.0f, .max_aspect = 4.0f}};
  EXPECT_EQ(BoxOf(wide, 400, 100, 0), WholeImage(400, 100));
  const DistortedBoxOptions covering = {
      .ranges = {.min_area = 0.05f, .max_area = 0.5f, .min_aspect = 1.0f, .max_aspect = 1.0f},
      .min_object_covered = 0.6f};
  EXPECT_EQ(BoxOf(covering, 100, 100, 0), WholeImage(100, 100));
}

TEST(DistortedBoxTest, TinyAndHugeImagesGiveABoxOfAtLeastOnePixel) {
  const DistortedBoxOptions any = {
      .ranges = {.min_area = 1e-6f, .max_area = 1.0f, .min_aspect = 1e-3f, .max_aspect = 1e3f},
      .min_object_covered = 0.0f};
  for (const int height : {1, 2, 3, 5, 65535}) {
    for (const int width : {1, 2, 3, 5, 65535}) {
      for (int record = 0; record < 100; ++record) {
        for (const DistortedBoxOptions& options : {DistortedBoxOptions(), any}) {
          ASSERT_THAT(CheckCropInside(BoxOf(options, height, width, record), height, width),
                      IsOk());
        }
      }
    }
  }
}

// Pins the draws, because another order would move every training crop.
TEST(DistortedBoxTest, BoxesArePinned) {
  EXPECT_EQ(BoxOf({}, 375, 500, 0), (CropRect{59, 238, 292, 260}));
  EXPECT_EQ(BoxOf({}, 375, 500, 1), (CropRect{19, 183, 287, 285}));
  EXPECT_EQ(BoxOf({}, 375, 500, 2), (CropRect{61, 274, 279, 219}));
}

TEST(DistortedBoxTest, OptionsAreChecked) {
  EXPECT_THAT(CheckDistortedBox({}), IsOk());
  EXPECT_THAT(CheckDistortedBox({.min_object_covered = 1.1f}),
              StatusIs(kInvalid, HasSubstr("min_object_covered is 1.1, want 0 to 1")));
  EXPECT_THAT(CheckDistortedBox({.min_object_covered = -0.1f}),
              StatusIs(kInvalid, HasSubstr("min_object_covered is -0.1")));
  EXPECT_THAT(CheckDistortedBox({.min_object_covered = std::numeric_limits<float>::quiet_NaN()}),
              StatusIs(kInvalid, HasSubstr("min_object_covered")));
  DistortedBoxOptions options;
  options.ranges.min_area = 0;
  EXPECT_THAT(CheckDistortedBox(options), StatusIs(kInvalid, HasSubstr("area_min: 0")));
}

TEST(DistortedBoxTest, PaddedCentreCropOmits32PixelsAtOutputScale) {
  EXPECT_EQ(PaddedCentreCrop(224, 375, 500), (CropRect{24, 86, 328, 328}));
  EXPECT_EQ(PaddedCentreCrop(224, 256, 257), (CropRect{16, 17, 224, 224}));
  EXPECT_EQ(PaddedCentreCrop(8, 1, 1), (CropRect{0, 0, 1, 1}));
}

}  // namespace
}  // namespace systole
