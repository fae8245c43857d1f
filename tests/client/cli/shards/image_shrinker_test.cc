#include "client/cli/shards/image_shrinker.h"

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

RgbImage Even(int width, int height, uint8_t value) {
  return {width, height, std::vector<uint8_t>(size_t{3} * width * height, value)};
}

TEST(ImageShrinkerTest, ShortSideIsAsAskedAndAspectIsKept) {
  const struct {
    int width, height, short_px, want_width, want_height;
  } cases[] = {{300, 200, 100, 150, 100}, {200, 300, 100, 100, 150}, {500, 333, 80, 120, 80},
               {333, 500, 256, 256, 384}, {1001, 999, 80, 80, 80},   {1000, 10, 1, 100, 1},
               {161, 160, 159, 160, 159}};
  for (const auto& c : cases) {
    const absl::StatusOr<RgbImage> small = ShrinkShortSide(Even(c.width, c.height, 77), c.short_px);
    ASSERT_THAT(small, IsOk());
    EXPECT_EQ(small->width, c.want_width);
    EXPECT_EQ(small->height, c.want_height);
    EXPECT_EQ(small->pixels.size(), size_t{3} * c.want_width * c.want_height);
    EXPECT_THAT(small->pixels, Each(77));
  }
}

TEST(ImageShrinkerTest, SmallImagesStayAsTheyAre) {
  RgbImage image = Even(30, 20, 9);
  image.pixels[5] = 200;
  const absl::StatusOr<RgbImage> same = ShrinkShortSide(image, 20);
  ASSERT_THAT(same, IsOk());
  EXPECT_EQ(same->width, 30);
  EXPECT_EQ(same->pixels, image.pixels);
}

TEST(ImageShrinkerTest, HalvingAveragesFourPixels) {
  RgbImage image = Even(2, 2, 0);
  image.pixels = {10, 0, 0, 20, 0, 0, 30, 0, 1, 43, 0, 1};
  const absl::StatusOr<RgbImage> small = ShrinkShortSide(image, 1);
  ASSERT_THAT(small, IsOk());
  EXPECT_THAT(small->pixels, ElementsAre(26, 0, 1));  // 25.75 and 0.5, rounded half up.
}

TEST(ImageShrinkerTest, FinePatternsAreAveragedAndNotSkipped) {
  RgbImage stripes = Even(64, 64, 0);  // Every other column is white.
  for (size_t i = 0; i < stripes.pixels.size(); ++i) {
    if (i / 3 % 2 == 1) stripes.pixels[i] = 255;
  }
  const absl::StatusOr<RgbImage> small = ShrinkShortSide(stripes, 12);
  ASSERT_THAT(small, IsOk());
  EXPECT_THAT(small->pixels, Each(128));
}

TEST(ImageShrinkerTest, AShortSideOfZeroIsRefused) {
  EXPECT_THAT(ShrinkShortSide(Even(4, 4, 0), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("short_px is 0")));
}

}  // namespace
}  // namespace systole
