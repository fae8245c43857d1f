#include "client/cli/shards/jpeg_check.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/image_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::_;

TEST(JpegCheckTest, AJpegIsIdentifiedByItsFirstTwoBytes) {
  EXPECT_TRUE(LooksLikeJpeg(TestJpeg(8, 8, 3, 1)));
  EXPECT_TRUE(LooksLikeJpeg("\xff\xd8"));
  EXPECT_FALSE(LooksLikeJpeg("\xff"));
  EXPECT_FALSE(LooksLikeJpeg(""));
  EXPECT_FALSE(LooksLikeJpeg("\x89PNG"));
}

TEST(JpegCheckTest, WholeImagesOfEveryKindPass) {
  absl::StatusOr<JpegCheck> check = JpegCheck::Create();
  ASSERT_THAT(check, IsOk());
  EXPECT_THAT(check->DecodeAll(TestJpeg(1, 1, 3, 1)), IsOk());
  EXPECT_THAT(check->DecodeAll(TestJpeg(37, 23, 1, 1)), IsOk());
  EXPECT_THAT(check->DecodeAll(TestJpeg(37, 23, 3, 1, {.progressive = true})), IsOk());
  EXPECT_THAT(check->DecodeAll(TestJpeg(37, 23, 3, 1, {.sampling = JpegSampling::k444})), IsOk());
}

// A cut image is found wherever it is cut: every row is decoded, and the end marker is looked for.
TEST(JpegCheckTest, ImageCutAnywhereIsDataLoss) {
  absl::StatusOr<JpegCheck> check = JpegCheck::Create();
  ASSERT_THAT(check, IsOk());
  const std::string jpeg = TestJpeg(48, 48, 3, 1);
  for (size_t size = 0; size < jpeg.size(); ++size) {
    EXPECT_THAT(check->DecodeAll(jpeg.substr(0, size)), StatusIs(absl::StatusCode::kDataLoss, _))
        << size << " of " << jpeg.size();
  }
  EXPECT_THAT(check->DecodeAll(jpeg), IsOk());  // The decoder still works after a bad image.
}

TEST(JpegCheckTest, ReadHeaderGivesTheSizeOfATruncatedJpeg) {
  absl::StatusOr<JpegCheck> check = JpegCheck::Create();
  ASSERT_THAT(check, IsOk());
  const std::string jpeg = TestJpeg(37, 23, 1, 1);
  const absl::StatusOr<ImageInfo> info = check->ReadHeader(jpeg.substr(0, jpeg.size() - 4));
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->width, 37);
  EXPECT_EQ(info->height, 23);
  EXPECT_EQ(info->components, 1);
}

}  // namespace
}  // namespace systole
