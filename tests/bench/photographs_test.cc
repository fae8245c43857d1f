#include "bench/photographs.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "client/texture/photograph_texture.h"
#include "core/image/image_transformer.h"
#include "core/image/jpeg/jpeg_decoder.h"
#include "core/image/png/png_decoder.h"
#include "core/image/window/crop.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::bench {
namespace {

TEST(PhotographsTest, IsAFunctionOfTheSeed) {
  EXPECT_EQ(MakePhotograph(3), MakePhotograph(3));
  EXPECT_NE(MakePhotograph(3), MakePhotograph(4));
}

TEST(PhotographsTest, IsAColourJpegOfTheStatedSize) {
  const std::string jpeg = MakePhotograph(1);
  absl::StatusOr<JpegDecoder> decoder = JpegDecoder::Create();
  ASSERT_THAT(decoder, IsOk());
  const absl::StatusOr<ImageInfo> info = decoder->ReadHeader(jpeg);
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->width, kPhotographWidth);
  EXPECT_EQ(info->height, kPhotographHeight);
  EXPECT_EQ(info->components, 3);
  // The frame header, SOF0 (baseline): 8 bits, height, width, 3 components. The first component has
  // 2 x 2 times as many samples as the others (4:2:0).
  const std::string frame("\xff\xc0\x00\x11\x08\x01\x77\x01\xf4\x03\x01\x22\x00\x02\x11", 15);
  EXPECT_THAT(jpeg, testing::HasSubstr(frame));
}

TEST(PhotographsTest, APngHoldsThePixelsThatTheJpegIsMadeOf) {
  constexpr int kWidth = 61;
  constexpr int kHeight = 47;
  const std::string png = MakePngPhotograph(5, kWidth, kHeight);
  std::vector<uint8_t> pixels(size_t{kHeight} * kWidth * 3);
  ASSERT_THAT(DecodePng(png, 3, absl::MakeSpan(pixels)), IsOk());
  EXPECT_EQ(pixels, PhotographPixels(5, kWidth, kHeight));
  EXPECT_LT(png.size(), pixels.size());
}

TEST(PhotographsTest, MeanFileSizeIsThatOfRealPhotographs) {
  constexpr int kCount = 32;
  size_t bytes = 0;
  for (int seed = 0; seed < kCount; ++seed) bytes += MakePhotograph(seed).size();
  EXPECT_GE(bytes / kCount, 80'000u);
  EXPECT_LE(bytes / kCount, 110'000u);
}

// How far two images differ, in grey levels.
struct Difference {
  double mean = 0;
  double max = 0;
};

Difference DifferenceOf(const std::vector<float>& a, const std::vector<float>& b) {
  Difference difference;
  for (size_t i = 0; i < a.size(); ++i) {
    const double of_value = std::abs(a[i] - b[i]);
    difference.mean += of_value / static_cast<double>(a.size());
    difference.max = std::max(difference.max, of_value);
  }
  return difference;
}

std::vector<float> Decode(const std::string& jpeg, int height, int width, JpegScale scale) {
  absl::StatusOr<JpegDecoder> decoder = JpegDecoder::Create();
  EXPECT_THAT(decoder, IsOk());
  EXPECT_THAT(decoder->ReadHeader(jpeg), IsOk());
  const CropRect whole = WholeImage(ScaledSide(height, scale), ScaledSide(width, scale));
  std::vector<uint8_t> pixels(size_t{3} * whole.height * whole.width);
  EXPECT_THAT(decoder->Decode(whole, absl::MakeSpan(pixels), scale), IsOk());
  return {pixels.begin(), pixels.end()};
}

std::vector<float> Shrink(const std::string& jpeg, int height, int width, bool scaled) {
  absl::StatusOr<ImageTransformer> transformer = ImageTransformer::Create(
      {.output = {.height = 224, .width = 298, .type = PixelType::kFloat32}, .scaled = scaled});
  EXPECT_THAT(transformer, IsOk());
  std::vector<float> pixels(size_t{3} * 224 * 298);
  const absl::Span<uint8_t> out(reinterpret_cast<uint8_t*>(pixels.data()),
                                pixels.size() * sizeof(float));
  EXPECT_THAT(transformer->ReadHeader(jpeg), IsOk());
  EXPECT_THAT(transformer->Transform(WholeImage(height, width), false, out), IsOk());
  return pixels;
}

// Checks what core/image/README.md says of images that are decoded at a smaller scale. Each pixel
// of such an image is the mean of a square block of pixels of the full decode. Shrinking this image
// and shrinking the full decode give different results. From the full decode, the resize reads
// only four pixels for each new pixel. In the smaller image, every pixel of the full decode counts.
TEST(PhotographsTest, ScaledDecodeIsABlockMeanAndDiffersFromFullDecodeWithinBounds) {
  struct Case {
    JpegScale scale;
    Difference of_images;  // Upper bounds.
  };
  for (const auto& [scale, at_most] : {Case{JpegScale::kHalf, {.mean = 5, .max = 130}},
                                       Case{JpegScale::kQuarter, {.mean = 9, .max = 180}},
                                       Case{JpegScale::kEighth, {.mean = 12, .max = 200}}}) {
    const int divisor = static_cast<int>(scale);
    SCOPED_TRACE(divisor);
    const int height = 280 * divisor;
    const int width = 376 * divisor;
    for (const uint64_t seed : {1, 2, 3}) {
      const std::string jpeg = MakePhotograph(seed, width, height, kPhotographQuality);
      const std::vector<float> full = Decode(jpeg, height, width, JpegScale::kFull);
      std::vector<float> means;
      for (int y = 0; y < 280; ++y) {
        for (int x = 0; x < 376 * 3; ++x) {
          const size_t first =
              (static_cast<size_t>(y) * width + static_cast<size_t>(x / 3)) * divisor * 3 + x % 3;
          float sum = 0;
          for (int i = 0; i < divisor * divisor; ++i) {
            sum += full[first + (static_cast<size_t>(i / divisor) * width + i % divisor) * 3];
          }
          means.push_back(sum / static_cast<float>(divisor * divisor));
        }
      }
      const Difference of_means = DifferenceOf(Decode(jpeg, height, width, scale), means);
      EXPECT_LT(of_means.mean, 0.7);
      EXPECT_LT(of_means.max, 25);
      const Difference of_images = DifferenceOf(Shrink(jpeg, height, width, /*scaled=*/true),
                                                Shrink(jpeg, height, width, /*scaled=*/false));
      EXPECT_LT(of_images.mean, at_most.mean);
      EXPECT_LT(of_images.max, at_most.max);
      EXPECT_GT(of_images.mean, 0.5);
    }
  }
}

}  // namespace
}  // namespace systole::bench
