#include "bench/photographs.h"

#include <string>

#include "core/image/jpeg_decoder.h"
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
  // The frame header, SOF0 (baseline): 8 bits, height, width, 3 components of which the first is
  // sampled 2 x 2 times as finely as the others (4:2:0).
  const std::string frame("\xff\xc0\x00\x11\x08\x01\x77\x01\xf4\x03\x01\x22\x00\x02\x11", 15);
  EXPECT_THAT(jpeg, testing::HasSubstr(frame));
}

TEST(PhotographsTest, MeanSizeIsThatOfRealOnes) {
  constexpr int kCount = 32;
  size_t bytes = 0;
  for (int seed = 0; seed < kCount; ++seed) bytes += MakePhotograph(seed).size();
  EXPECT_GE(bytes / kCount, 80'000u);
  EXPECT_LE(bytes / kCount, 110'000u);
}

}  // namespace
}  // namespace systole::bench
