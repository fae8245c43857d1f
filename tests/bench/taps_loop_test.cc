#include "bench/taps_loop.h"

#include <vector>

#include "core/image/resize/resampler.h"
#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::bench {
namespace {

using ::testing::ElementsAre;

constexpr ImageSize kIn = {.height = 400, .width = 600};
constexpr ImageSize kOut = {.height = 200, .width = 200};

TEST(TapsLoopTest, EveryValueIsTheWeightedSumOfItsTapsOnEverySimdTarget) {
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    for (const int taps : {1, 2, 7}) {
      TapsLoop loop;
      loop.Run({.rows = 2, .row_values = 101, .taps = static_cast<double>(taps)});
      for (int i = 0; i < 101; ++i) {
        float sum = loop.weights()[0] * loop.in()[i];
        for (int k = 1; k < taps; ++k) sum += loop.weights()[k] * loop.in()[i + k];
        ASSERT_EQ(loop.row()[i], sum) << i;
      }
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

TEST(PassesTest, TheDefaultMethodResizesWidthFirstInTheNeededRowsOnly) {
  EXPECT_THAT(PassesOf({}, kIn, kOut),
              ElementsAre(TapsPass{.rows = 400, .row_values = 600, .taps = 2},
                          TapsPass{.rows = 200, .row_values = 600, .taps = 2}));
  EXPECT_THAT(PassesOf({}, {.height = 4000, .width = 600}, kOut)[0].rows, 400);
}

TEST(PassesTest, AntialiasingTakesMoreTapsWhereTheImageShrinks) {
  EXPECT_THAT(PassesOf({.method = ResampleMethod::kBilinear, .antialias = true}, kIn, kOut),
              ElementsAre(TapsPass{.rows = 200, .row_values = 1800, .taps = 4},
                          TapsPass{.rows = 200, .row_values = 600, .taps = 6}));
  EXPECT_THAT(PassesOf({.method = ResampleMethod::kBilinear, .antialias = true},
                       {.height = 100, .width = 100}, kOut),
              ElementsAre(TapsPass{.rows = 200, .row_values = 300, .taps = 2},
                          TapsPass{.rows = 200, .row_values = 600, .taps = 2}));
}

TEST(PassesTest, ColumnsThatNoOutputPixelNeedsAreLeftOut) {
  EXPECT_THAT(PassesOf({.method = ResampleMethod::kBicubic, .half_pixel_centres = false},
                       {.height = 400, .width = 3000}, kOut),
              ElementsAre(TapsPass{.rows = 200, .row_values = 2400, .taps = 4},
                          TapsPass{.rows = 200, .row_values = 600, .taps = 4}));
}

}  // namespace
}  // namespace systole::bench
