// Tests that need no data of TensorFlow. tests/core/operations/operations_golden_test.cc compares
// resized images with TensorFlow's.
#include "core/image/resize/resampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/image/resize/sampling_spans.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;

constexpr SamplingKernel kKernels[] = {SamplingKernel::kTriangle,      SamplingKernel::kKeysCubic,
                                       SamplingKernel::kMitchellCubic, SamplingKernel::kLanczos3,
                                       SamplingKernel::kLanczos5,      SamplingKernel::kGaussian};

constexpr ResampleMethod kMethods[] = {ResampleMethod::kBilinear,     ResampleMethod::kBicubic,
                                       ResampleMethod::kArea,         ResampleMethod::kLanczos3,
                                       ResampleMethod::kLanczos5,     ResampleMethod::kGaussian,
                                       ResampleMethod::kMitchellCubic};

// Resizes all of `image`, which has one channel.
template <typename T>
std::vector<float> ResampleAll(const ResampleOptions& options, const std::vector<T>& image,
                               int in_height, int in_width, int height, int width) {
  std::vector<float> out(static_cast<size_t>(height * width), -1);
  Resample<T>(options, {image.data(), in_width, in_height, in_width, 1},
              {out.data(), width, height, width, 1});
  return out;
}

TEST(SamplingSpansTest, WeightsOfEachPixelSumToOneAndAreZeroOutsideTheInput) {
  for (const SamplingKernel kernel : kKernels) {
    for (const auto& [in, out] :
         {std::pair(1, 1), {1, 7}, {9, 2}, {100, 33}, {33, 100}, {65535, 3}, {3, 16384}}) {
      for (const bool antialias : {false, true}) {
        const SamplingSpans spans = MakeSamplingSpans(kernel, in, out, antialias);
        ASSERT_EQ(spans.starts.size(), static_cast<size_t>(out));
        for (int i = 0; i < out; ++i) {
          const auto first = spans.weights.begin() + int64_t{i} * spans.span;
          // Weights are normalised in f32, so a sum of 65,535 weights is off by that many
          // roundings.
          const double sum = std::accumulate(first, first + spans.span, 0.0);
          ASSERT_NEAR(sum, 1.0, 1e-4) << in << " to " << out << " pixel " << i;
          ASSERT_GE(spans.starts[static_cast<size_t>(i)], 0);
          // Weights beyond the input are 0.
          for (int k = in - spans.starts[static_cast<size_t>(i)]; k < spans.span; ++k) {
            ASSERT_EQ(first[k], 0.0f);
          }
        }
      }
    }
  }
}

TEST(SamplingSpansTest, OnlyAntialiasedDownscalingWidensSpans) {
  EXPECT_EQ(MakeSamplingSpans(SamplingKernel::kTriangle, 100, 10, false).span, 3);
  EXPECT_EQ(MakeSamplingSpans(SamplingKernel::kTriangle, 100, 10, true).span, 21);
  EXPECT_EQ(MakeSamplingSpans(SamplingKernel::kTriangle, 10, 100, true).span, 3);
  EXPECT_EQ(MakeSamplingSpans(SamplingKernel::kLanczos3, 2, 100, true).span, 2);
}

TEST(ResamplerTest, AFlatImageStaysFlat) {
  const std::vector<uint8_t> image(5 * 7, 90);
  for (const ResampleMethod method : kMethods) {
    for (const auto& [height, width] : {std::pair(1, 1), {3, 4}, {11, 13}}) {
      EXPECT_THAT(ResampleAll({.method = method}, image, 5, 7, height, width),
                  Each(FloatNear(90, 1e-3f)));
    }
  }
}

TEST(ResamplerTest, AreaMethodGivesTheMeanOfTheCoveredPixels) {
  const std::vector<uint8_t> image = {0, 10, 20, 30, 40, 50};
  EXPECT_THAT(ResampleAll({.method = ResampleMethod::kArea}, image, 2, 3, 1, 1), ElementsAre(25));
  EXPECT_THAT(ResampleAll({.method = ResampleMethod::kArea}, image, 1, 6, 1, 3),
              ElementsAre(5, 25, 45));
  EXPECT_THAT(ResampleAll({.method = ResampleMethod::kArea}, image, 1, 6, 1, 4),
              ElementsAre(FloatNear(10.0f / 3, 1e-5f), FloatNear(50.0f / 3, 1e-5f),
                          FloatNear(100.0f / 3, 1e-5f), FloatNear(140.0f / 3, 1e-5f)));
}

TEST(ResamplerTest, WithoutHalfPixelCentresPixelsAreSampledAtTheirCorner) {
  const std::vector<uint8_t> image = {0, 10, 20, 30};
  EXPECT_THAT(ResampleAll({.half_pixel_centres = false}, image, 1, 4, 1, 2), ElementsAre(0, 20));
  EXPECT_THAT(ResampleAll({}, image, 1, 4, 1, 2), ElementsAre(5, 25));
  // The last pixels have no neighbour on the right.
  EXPECT_THAT(ResampleAll({.half_pixel_centres = false}, image, 1, 4, 1, 8),
              ElementsAre(0, 5, 10, 15, 20, 25, 30, 30));
}

TEST(ResamplerTest, AntialiasedBilinearUsesAPixelThatPlainBilinearSkips) {
  std::vector<uint8_t> image(16, 0);
  image[0] = 255;  // Bilinear without antialiasing looks at pixels 1 and 2 of every 4.
  EXPECT_EQ(ResampleAll({}, image, 1, 16, 1, 4)[0], 0);
  EXPECT_GT(ResampleAll({.antialias = true}, image, 1, 16, 1, 4)[0], 10);
}

TEST(ResamplerTest, NearestKeepsPixelsAsTheyAre) {
  const std::vector<float> image = {1e30f, -0.5f, 3, 4};
  std::vector<float> out(8);
  ResampleNearest<float>(true, {image.data(), 4, 1, 4, 1}, {out.data(), 8, 1, 8, 1});
  EXPECT_THAT(out, ElementsAre(1e30f, 1e30f, -0.5f, -0.5f, 3, 3, 4, 4));
  const std::vector<uint8_t> pairs = {1, 2, 3, 4, 5, 6};  // Two channels.
  std::vector<uint8_t> pixels(4);
  ResampleNearest<uint8_t>(true, {pairs.data(), 6, 1, 3, 2}, {pixels.data(), 4, 1, 2, 2});
  EXPECT_THAT(pixels, ElementsAre(1, 2, 5, 6));
  ResampleNearest<uint8_t>(false, {pairs.data(), 6, 1, 3, 2}, {pixels.data(), 4, 1, 2, 2});
  EXPECT_THAT(pixels, ElementsAre(1, 2, 3, 4));
}

TEST(ResamplerTest, ReadsAndWritesOnlyTheGivenPartsOfImages) {
  // Resizes the 2 x 2 pixels in the middle of 4 x 4 into the middle of 4 x 4.
  std::vector<uint8_t> image(16, 255);
  for (const size_t at : {5, 6, 9, 10}) image[at] = static_cast<uint8_t>(at);
  for (const ResampleMethod method : kMethods) {
    std::vector<float> out(16, -1);
    Resample<uint8_t>({.method = method}, {&image[5], 4, 2, 2, 1}, {&out[5], 4, 2, 2, 1});
    for (size_t i = 0; i < out.size(); ++i) {
      if (i == 5 || i == 6 || i == 9 || i == 10) {
        EXPECT_GT(out[i], 4);
        EXPECT_LT(out[i], 11);
      } else {
        EXPECT_EQ(out[i], -1);
      }
    }
  }
}

TEST(ResamplerTest, AFlatImageStaysFlatAtManySizes) {
  const std::vector<float> image(61 * 3, 7);
  for (const ResampleMethod method : kMethods) {
    for (int in = 1; in <= 61; ++in) {
      for (const int out : {1, 2, 3, 5, 13, 47, 100}) {
        ASSERT_THAT(ResampleAll({.method = method}, image, in, 3, out, 2),
                    Each(FloatNear(7, 1e-4f)));
      }
    }
  }
}

}  // namespace
}  // namespace systole
