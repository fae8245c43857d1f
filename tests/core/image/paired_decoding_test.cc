#include "core/image/paired_decoding.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/image/jpeg/jpeg_fixture.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr JpegKind kBaseline = {.name = "baseline"};
constexpr JpegKind kProgressive = {.name = "progressive", .progressive = true};

ImageTransformer MakeTransformer() {
  return *ImageTransformer::Create({.output = {.height = 8, .width = 8}});
}

void Start(ImageTransformer& image, const std::string& jpeg, int height, int width) {
  ASSERT_THAT(image.ReadHeader(jpeg), IsOk());
  ASSERT_THAT(image.Start(WholeImage(height, width), false), IsOk());
}

std::vector<uint8_t> Finish(ImageTransformer& image) {
  std::vector<uint8_t> out(static_cast<size_t>(image.output_bytes()));
  EXPECT_THAT(image.Finish(absl::MakeSpan(out)), IsOk());
  return out;
}

TEST(PairedDecodingTest, AdvanceReturnsTheLaneOfTheSmallerImageFirst) {
  const std::string large = MakeJpeg(kBaseline, 200, 160, 1);
  const std::string small = MakeJpeg(kBaseline, 24, 24, 2);
  ImageTransformer a = MakeTransformer();
  ImageTransformer b = MakeTransformer();
  Start(a, large, 160, 200);
  Start(b, small, 24, 24);
  PairedDecoding decoding;
  EXPECT_FALSE(decoding.waits(0));
  decoding.Add(0, a);
  decoding.Add(1, b);
  EXPECT_EQ(decoding.Advance(), 1);
  EXPECT_TRUE(decoding.waits(1));  // Lane 1 waits until Clear(1).
  decoding.Clear(1);
  EXPECT_FALSE(decoding.waits(1));
  EXPECT_EQ(decoding.Advance(), 0);  // Lane 0 decodes alone.
}

TEST(PairedDecodingTest, AdvanceReturnsALaneOfSeveralSmallImagesBeforeALargeImage) {
  const std::string large = MakeJpeg(kBaseline, 300, 300, 1);
  const std::string small = MakeJpeg(kBaseline, 24, 24, 2);
  std::vector<ImageTransformer> images;
  for (int i = 0; i < 4; ++i) images.push_back(MakeTransformer());
  Start(images[0], large, 300, 300);
  PairedDecoding decoding;
  decoding.Add(0, images[0]);
  for (size_t i = 1; i < 4; ++i) {
    Start(images[i], small, 24, 24);
    decoding.Add(1, images[i]);
  }
  EXPECT_EQ(decoding.Advance(), 1);
  ImageTransformer alone = MakeTransformer();
  Start(alone, small, 24, 24);
  const std::vector<uint8_t> want = Finish(alone);
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(Finish(images[i]), want);
}

TEST(PairedDecodingTest, EqualImagesInBothLanesAreReturnedOneAfterTheOther) {
  const std::string jpeg = MakeJpeg(kBaseline, 40, 40, 3);
  ImageTransformer a = MakeTransformer();
  ImageTransformer b = MakeTransformer();
  ImageTransformer c = MakeTransformer();
  Start(a, jpeg, 40, 40);
  Start(b, jpeg, 40, 40);
  PairedDecoding decoding;
  decoding.Add(0, a);
  decoding.Add(1, b);
  const int first = decoding.Advance();
  decoding.Clear(first);
  Start(c, jpeg, 40, 40);
  decoding.Add(first, c);
  EXPECT_NE(decoding.Advance(), first);
}

TEST(PairedDecodingTest, ALaneWithOnlyAProgressiveJpegDoesNotWait) {
  ImageTransformer image = MakeTransformer();
  const std::string jpeg = MakeJpeg(kProgressive, 40, 40, 3);
  Start(image, jpeg, 40, 40);
  PairedDecoding decoding;
  decoding.Add(0, image);
  EXPECT_FALSE(decoding.waits(0));
}

}  // namespace
}  // namespace systole
