#include "core/image/png/png_decoder.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/image/png/png_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// tests/core/operations compares every kind of file with TensorFlow.

std::vector<uint8_t> MustDecode(const std::string& png, int channels) {
  const absl::StatusOr<PngInfo> info = ReadPngHeader(png, channels);
  EXPECT_THAT(info, IsOk());
  std::vector<uint8_t> out(static_cast<size_t>(info->width) * info->height * channels);
  EXPECT_THAT(DecodePng(png, channels, absl::MakeSpan(out)), IsOk());
  return out;
}

const std::string kGrey = PngOf("\x01\x80\xff\x07\x08\x09", 3, 2, 1);
const std::string kColour = PngOf("\x10\x20\x30\xff\xff\xff", 2, 1, 3);

TEST(PngDecoderTest, GreyIsReplicatedToRgbAndRgbIsWeightedToGrey) {
  EXPECT_THAT(MustDecode(kGrey, 1), ElementsAre(1, 128, 255, 7, 8, 9));
  EXPECT_THAT(MustDecode(kGrey, 3),
              ElementsAre(1, 1, 1, 128, 128, 128, 255, 255, 255, 7, 7, 7, 8, 8, 8, 9, 9, 9));
  EXPECT_THAT(MustDecode(kColour, 3), ElementsAre(16, 32, 48, 255, 255, 255));
  EXPECT_THAT(MustDecode(kColour, 1), ElementsAre(29, 255));
}

TEST(PngDecoderTest, TheHeaderTellsTheSize) {
  const absl::StatusOr<PngInfo> info = ReadPngHeader(kGrey, 3);
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->width, 3);
  EXPECT_EQ(info->height, 2);
  EXPECT_TRUE(LooksLikePng(kGrey));
  EXPECT_FALSE(LooksLikePng("\xff\xd8\xff"));
}

TEST(PngDecoderTest, ACutOrDamagedFileIsDataLoss) {
  const auto status = [](const std::string& png) {
    const absl::StatusOr<PngInfo> info = ReadPngHeader(png, 3);
    if (!info.ok()) return info.status();
    std::vector<uint8_t> out(static_cast<size_t>(info->width) * info->height * 3);
    return DecodePng(png, 3, absl::MakeSpan(out));
  };
  // Like libpng, the decoder accepts a file that lacks its last bytes, the end marker.
  for (size_t bytes = 0; bytes + 17 < kColour.size(); ++bytes) {
    EXPECT_THAT(status(kColour.substr(0, bytes)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("PNG: ")))
        << bytes;
  }
  for (const size_t at : {size_t{0}, size_t{18}, size_t{30}, size_t{45}}) {
    std::string damaged = kColour;
    damaged[at] ^= 0x20;
    EXPECT_THAT(status(damaged), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("PNG: "))) << at;
  }
  EXPECT_THAT(status("\xff\xd8\xff\xe0 a JPEG"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("PNG: ")));
}

TEST(PngDecoderTest, AnOutputBufferOfTheWrongSizeIsRefused) {
  std::vector<uint8_t> out(5);
  EXPECT_THAT(DecodePng(kColour, 3, absl::MakeSpan(out)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want 6")));
}

TEST(PngDecoderTest, TheHeaderOfAHugeImageIsReadWithoutItsPixels) {
  const std::string kind = {8, 2, 0, 0, 0};
  const std::string huge = "\x89PNG\r\n\x1a\n" +
                           PngChunk("IHDR", BigEndian(1 << 20) + BigEndian(1 << 20) + kind) +
                           PngChunk("IDAT", "x");
  const absl::StatusOr<PngInfo> info = ReadPngHeader(huge, 3);
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->width, 1 << 20);
  const std::string beyond =
      "\x89PNG\r\n\x1a\n" + PngChunk("IHDR", BigEndian(1 << 21) + BigEndian(1) + kind);
  EXPECT_THAT(ReadPngHeader(beyond, 3), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("PNG: ")));
}

}  // namespace
}  // namespace systole
