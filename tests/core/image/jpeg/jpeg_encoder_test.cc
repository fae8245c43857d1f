#include "core/image/jpeg/jpeg_encoder.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/image/jpeg/jpeg_fixture.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// Makes a smooth image, which even subsampled colour preserves.
std::vector<uint8_t> Gradient(int width, int height, int channels) {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        pixels.push_back(static_cast<uint8_t>(c == 0 ? 2 * x : c == 1 ? 3 * y : 200 - x - y));
      }
    }
  }
  return pixels;
}

int WorstError(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  int worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

// Sampling factors of the first component, from the frame header.
int SamplingByte(const std::string& jpeg, const char* marker) {
  const size_t frame = jpeg.find(marker);
  return frame == std::string::npos ? -1 : static_cast<uint8_t>(jpeg[frame + 11]);
}

TEST(JpegEncoderTest, RoundTripKeepsAnImageApproximately) {
  for (const int channels : {1, 3}) {
    const std::vector<uint8_t> pixels = Gradient(61, 47, channels);
    for (const auto& [sampling, byte] :
         {std::pair{JpegSampling::k444, 0x11}, std::pair{JpegSampling::k422, 0x21},
          std::pair{JpegSampling::k420, 0x22}, std::pair{JpegSampling::k440, 0x12},
          std::pair{JpegSampling::k411, 0x41}, std::pair{JpegSampling::k410, 0x42}}) {
      const auto jpeg = EncodeJpeg(pixels, 61, 47, channels, {.sampling = sampling});
      ASSERT_THAT(jpeg, IsOk());
      EXPECT_EQ(SamplingByte(*jpeg, "\xff\xc0"), channels == 1 ? 0x11 : byte);
      const Decoded decoded = DecodeWhole(*jpeg, {.grey = channels == 1});
      EXPECT_EQ(decoded.width, 61);
      EXPECT_EQ(decoded.height, 47);
      EXPECT_LE(WorstError(decoded.pixels, pixels), 12);
    }
  }
}

TEST(JpegEncoderTest, QualityProgressionAndRestartsTakeEffect) {
  const std::vector<uint8_t> pixels = TestPixels(64, 64, 3, 1);
  const auto best = EncodeJpeg(pixels, 64, 64, 3, {.quality = 100});
  const auto worst = EncodeJpeg(pixels, 64, 64, 3, {.quality = 1});
  ASSERT_THAT(best, IsOk());
  ASSERT_THAT(worst, IsOk());
  EXPECT_GT(best->size(), 3 * worst->size());
  const auto progressive = EncodeJpeg(pixels, 64, 64, 3, {.progressive = true});
  ASSERT_THAT(progressive, IsOk());
  EXPECT_NE(SamplingByte(*progressive, "\xff\xc2"), -1);
  const auto restarts = EncodeJpeg(pixels, 64, 64, 3, {.restart_rows = 1});
  ASSERT_THAT(restarts, IsOk());
  EXPECT_NE(restarts->find("\xff\xd0"), std::string::npos);
}

TEST(JpegEncoderTest, EncodingTwiceGivesTheSameBytes) {
  const std::vector<uint8_t> pixels = TestPixels(33, 21, 3, 9);
  EXPECT_EQ(*EncodeJpeg(pixels, 33, 21, 3), *EncodeJpeg(pixels, 33, 21, 3));
}

TEST(JpegEncoderTest, BadArgumentsAreNamed) {
  const std::vector<uint8_t> pixels(12);
  const auto encode = [&pixels](int width, int height, int channels,
                                const JpegEncoderOptions& options = {}) {
    return EncodeJpeg(pixels, width, height, channels, options).status();
  };
  EXPECT_THAT(encode(2, 2, 3), IsOk());
  EXPECT_THAT(encode(2, 2, 2), StatusIs(kInvalid, HasSubstr("channels is 2")));
  EXPECT_THAT(encode(0, 2, 3), StatusIs(kInvalid, HasSubstr("0x2")));
  EXPECT_THAT(encode(1, 65501, 1), StatusIs(kInvalid, HasSubstr("65500")));
  EXPECT_THAT(encode(2, 3, 3), StatusIs(kInvalid, HasSubstr("12 bytes of pixels, want 18")));
  EXPECT_THAT(encode(2, 2, 3, {.quality = 0}), StatusIs(kInvalid, HasSubstr("quality is 0")));
  EXPECT_THAT(encode(2, 2, 3, {.quality = 101}), StatusIs(kInvalid, HasSubstr("quality is 101")));
  EXPECT_THAT(encode(2, 2, 3, {.restart_rows = -1}),
              StatusIs(kInvalid, HasSubstr("restart_rows is -1")));
}

}  // namespace
}  // namespace systole
