#include "core/image/image_size.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/image/jpeg/jpeg_encoder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/image/png/png_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

// Makes a PNG with a header of this size and without pixels.
std::string PngHeader(uint32_t width, uint32_t height) {
  const std::string kind = {8, 2, 0, 0, 0};
  return "\x89PNG\r\n\x1a\n" + PngChunk("IHDR", BigEndian(width) + BigEndian(height) + kind) +
         PngChunk("IDAT", "");
}

TEST(ImageSizeTest, WidthAndHeightAreReadFromTheHeader) {
  const std::vector<uint8_t> pixels(size_t{7} * 5 * 3);
  const std::optional<ImageSize> jpeg = SizeOfImage(*EncodeJpeg(pixels, 7, 5, 3, {}));
  ASSERT_TRUE(jpeg.has_value());
  EXPECT_EQ(jpeg->width, 7);
  EXPECT_EQ(jpeg->height, 5);
  const std::optional<ImageSize> png = SizeOfImage(PngHeader(70, 50));
  ASSERT_TRUE(png.has_value());
  EXPECT_EQ(png->width, 70);
  EXPECT_EQ(png->height, 50);
}

// An image that is too large to be decoded has no size here. A damaged header may state a huge
// size. If such a record were among those that a dataset samples to estimate costs, every feed of
// the dataset would seem too costly.
TEST(ImageSizeTest, TooLargeOrInvalidImagesHaveNoSize) {
  EXPECT_TRUE(SizeOfImage(PngHeader(1 << 13, 1 << 12)).has_value());
  EXPECT_FALSE(SizeOfImage(PngHeader(1 << 13, (1 << 12) + 1)).has_value());
  EXPECT_FALSE(SizeOfImage(PngHeader(1 << 20, 1 << 20)).has_value());
  EXPECT_FALSE(SizeOfImage("").has_value());
  EXPECT_FALSE(SizeOfImage("no image").has_value());
}

TEST(ImageSizeTest, HasOneChannelForGreyImages) {
  const std::vector<uint8_t> pixels(size_t{7} * 5 * 3);
  const std::string grey(size_t{7} * 5, 'g');
  EXPECT_EQ(SizeOfImage(*EncodeJpeg(pixels, 7, 5, 3, {}))->channels, 3);
  EXPECT_EQ(SizeOfImage(*EncodeJpeg(std::vector<uint8_t>(grey.begin(), grey.end()), 7, 5, 1, {}))
                ->channels,
            1);
  EXPECT_EQ(SizeOfImage(PngHeader(70, 50))->channels, 3);
  EXPECT_EQ(SizeOfImage(PngOf(grey, 7, 5, 1))->channels, 1);
}

TEST(ImageSizeTest, TheErrorSaysWhyAnImageHasNoSize) {
  EXPECT_THAT(ReadImageSize("no image"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("neither a JPEG nor a PNG")));
  EXPECT_THAT(ReadImageSize("\xff\xd8\xff\xe0"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("JPEG")));
  EXPECT_THAT(ReadImageSize(PngHeader(1 << 13, 1 << 13)),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("8192 x 8192")));
}

}  // namespace
}  // namespace systole
