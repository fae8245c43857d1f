#include "core/image/resize/fast_resampler.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/interrupt/interrupt.h"
#include "core/numeric/canonical_nan.h"
#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

class Draw {
 public:
  explicit Draw(uint32_t seed) : engine_(seed) {}

  int Below(int limit) { return static_cast<int>(engine_() % static_cast<uint32_t>(limit)); }
  // Often draws small sides, because edges are likely to go wrong.
  int Side() { return 1 + Below(Below(4) == 0 ? 150 : 20); }
  void Fill(std::vector<uint8_t>& values) {
    for (uint8_t& value : values) value = static_cast<uint8_t>(Below(256));
  }
  void Fill(std::vector<float>& values) {
    constexpr float kOdd[] = {0.0f,
                              -0.0f,
                              1e-40f,
                              -3e38f,
                              std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()};
    const bool is_odd = Below(3) == 0;
    for (float& value : values) {
      value = static_cast<float>(Below(4000) - 2000) / 7;
      if (is_odd && Below(50) == 0) value = kOdd[Below(6)];
    }
  }

 private:
  std::minstd_rand engine_;
};

ResampleOptions DrawOptions(Draw& draw) {
  constexpr ResampleMethod kMethods[] = {ResampleMethod::kBilinear,     ResampleMethod::kBicubic,
                                         ResampleMethod::kArea,         ResampleMethod::kLanczos3,
                                         ResampleMethod::kLanczos5,     ResampleMethod::kGaussian,
                                         ResampleMethod::kMitchellCubic};
  ResampleOptions options = {.method = kMethods[draw.Below(7)]};
  options.antialias = options.method != ResampleMethod::kArea && draw.Below(2) == 0;
  if (options.method == ResampleMethod::kBilinear || options.method == ResampleMethod::kBicubic) {
    options.half_pixel_centres = options.antialias || draw.Below(2) == 0;
  }
  return options;
}

std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(CanonicalNan(value)));
  return bits;
}

// Resizes a part of an image into a part of another image, and compares with the reference. The
// input's memory ends where its part ends, so that a sanitizer sees any read beyond the part.
template <typename T>
void Compare(Draw& draw) {
  const ResampleOptions options = DrawOptions(draw);
  const int channels = draw.Below(4) == 0 ? 1 + draw.Below(4) : 3;
  const int in_height = draw.Side(), in_width = draw.Side();
  const int out_height = draw.Side(), out_width = draw.Side();
  const int in_row = in_width * channels + draw.Below(3);
  const int out_row = out_width * channels + draw.Below(3);
  std::vector<T> pixels(static_cast<size_t>((in_height - 1) * in_row + in_width * channels));
  draw.Fill(pixels);
  const PixelView<const T> in = {pixels.data(), in_row, in_height, in_width, channels};
  std::vector<float> want(static_cast<size_t>((out_height - 1) * out_row + out_width * channels),
                          -77.0f);
  std::vector<float> got = want;
  Resample(options, in, {want.data(), out_row, out_height, out_width, channels});
  FastResample(options, in, {got.data(), out_row, out_height, out_width, channels});
  ASSERT_EQ(BitsOf(got), BitsOf(want))
      << "method " << static_cast<int>(options.method) << ", antialias " << options.antialias
      << ", half-pixel " << options.half_pixel_centres << ", " << in_height << "x" << in_width
      << " to " << out_height << "x" << out_width << ", channels " << channels;
}

TEST(FastResamplerTest, EveryTargetGivesTheBitsOfTheReference) {
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    for (uint32_t round = 0; round < 1500; ++round) {
      SCOPED_TRACE(testing::Message() << "round " << round);
      Draw draw(round + 1);
      ASSERT_NO_FATAL_FAILURE(draw.Below(2) == 0 ? Compare<float>(draw) : Compare<uint8_t>(draw));
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

TEST(FastResamplerTest, ASumOfZerosHasTheSignOfTheReference) {
  const std::vector<float> zeros(6 * 5 * 3, -0.0f);
  for (const ResampleOptions& options :
       {ResampleOptions{},
        {.antialias = true},
        {.method = ResampleMethod::kBicubic},
        {.method = ResampleMethod::kBicubic, .half_pixel_centres = false},
        {.method = ResampleMethod::kMitchellCubic}}) {
    std::vector<float> want(4 * 4 * 3, 1), got(4 * 4 * 3, 2);
    Resample<float>(options, {zeros.data(), 15, 6, 5, 3}, {want.data(), 12, 4, 4, 3});
    FastResample<float>(options, {zeros.data(), 15, 6, 5, 3}, {got.data(), 12, 4, 4, 3});
    EXPECT_EQ(BitsOf(got), BitsOf(want)) << static_cast<int>(options.method);
  }
}

TEST(FastResamplerTest, ThinImagesOfTheLargestSidesMatchTheReference) {
  const std::vector<uint8_t> pixels(65535, 200);
  for (const ResampleMethod method :
       {ResampleMethod::kBilinear, ResampleMethod::kBicubic, ResampleMethod::kLanczos3}) {
    for (const bool half_pixel : {true, false}) {
      if (!half_pixel && method == ResampleMethod::kLanczos3) continue;
      const ResampleOptions options = {.method = method, .half_pixel_centres = half_pixel};
      for (const auto& [height, width] : {std::pair(65535, 1), {1, 65535}}) {
        std::vector<float> want(16384), got(16384);
        const PixelView<const uint8_t> in = {pixels.data(), width, height, width, 1};
        const int out_height = height == 1 ? 1 : 16384;
        const int out_width = width == 1 ? 1 : 16384;
        Resample(options, in, {want.data(), out_width, out_height, out_width, 1});
        FastResample(options, in, {got.data(), out_width, out_height, out_width, 1});
        EXPECT_EQ(BitsOf(got), BitsOf(want)) << static_cast<int>(method) << " " << height;
      }
    }
  }
}

TEST(FastResamplerTest, RowsMatchTheReferenceInOrderAndMirroredIfAsked) {
  for (uint32_t round = 0; round < 300; ++round) {
    Draw draw(round + 1);
    const ResampleOptions options = DrawOptions(draw);
    if (!GivesRows(options)) continue;
    const int channels = draw.Below(3) == 0 ? 1 : 3;
    const int in_height = draw.Side(), in_width = draw.Side();
    const int height = draw.Side(), width = draw.Side();
    std::vector<uint8_t> pixels(static_cast<size_t>(in_height * in_width * channels));
    draw.Fill(pixels);
    const PixelView<const uint8_t> in = {pixels.data(), in_width * channels, in_height, in_width,
                                         channels};
    std::vector<float> want(static_cast<size_t>(height * width * channels));
    Resample(options, in, {want.data(), width * channels, height, width, channels});
    for (const bool mirrored : {false, true}) {
      std::vector<float> got;
      FastResampleRows(options, in, height, width, mirrored,
                       [&](int first, int count, const float* rows) {
                         EXPECT_EQ(first * width * channels, static_cast<int>(got.size()));
                         got.insert(got.end(), rows, rows + count * width * channels);
                       });
      ASSERT_EQ(got.size(), want.size());
      for (int y = 0; mirrored && y < height; ++y) {
        for (int x = 0; x < width / 2; ++x) {
          float* const row = got.data() + y * width * channels;
          std::swap_ranges(row + x * channels, row + (x + 1) * channels,
                           row + (width - 1 - x) * channels);
        }
      }
      EXPECT_EQ(BitsOf(got), BitsOf(want)) << "round " << round;
    }
  }
}

TEST(FastResamplerTest, WritesNothingIfTheInterruptFlagIsRaised) {
  const std::vector<uint8_t> pixels(50 * 50 * 3, 9);
  InterruptFlag unwanted;
  unwanted.Raise();
  const InterruptScope scope(unwanted);
  for (const ResampleOptions& options :
       {ResampleOptions{}, {.antialias = true}, {.method = ResampleMethod::kBicubic}}) {
    std::vector<float> out(20 * 20 * 3, -1);
    FastResample<uint8_t>(options, {pixels.data(), 150, 50, 50, 3}, {out.data(), 60, 20, 20, 3});
    EXPECT_THAT(out, testing::Each(-1));
  }
}

}  // namespace
}  // namespace systole
