// The memory for an image of several scans is counted before libjpeg allocates it.
#include <malloc.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/image/jpeg/jpeg_decoder.h"
#include "core/memory/scratch_scope.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/image/jpeg/jpeg_fixture.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

// Records how much memory is asked for.
class NotingSource final : public ScratchSource {
 public:
  bool Need(ScratchUse use, int64_t bytes) override {
    EXPECT_EQ(use, ScratchUse::kCoefficients);
    needs.push_back(bytes);
    return gives;
  }

  bool gives = true;
  std::vector<int64_t> needs;
};

TEST(ImageScratchTest, CoefficientsAreCountedAsLibjpegAllocatesThem) {
  constexpr int kWidth = kSanitized ? 203 : 1003, kHeight = kSanitized ? 177 : 777;
  for (JpegKind kind : AllJpegKinds()) {
    for (const bool progressive : {false, true}) {
      SCOPED_TRACE(testing::Message() << kind.name << (progressive ? ", progressive" : ""));
      if (progressive) {
        if (kind.arithmetic || kind.separate_scans) continue;
        kind.progressive = true;
      }
      const std::string jpeg = MakeJpeg(kind, kWidth, kHeight, 3);
      absl::StatusOr<JpegDecoder> decoder = JpegDecoder::Create();
      ASSERT_THAT(decoder, IsOk());
      NotingSource source;
      const ScratchScope scope(source);
      ASSERT_THAT(decoder->ReadHeader(jpeg), IsOk());
      ASSERT_THAT(decoder->StartCrop({.y = 0, .x = 0, .height = kHeight, .width = kWidth}), IsOk());
      const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
      ASSERT_THAT(decoder->NextRow(), IsOk());
      const size_t taken = mallinfo2().uordblks + mallinfo2().hblkhd - before;
      if (!kind.progressive && !kind.separate_scans) {
        EXPECT_TRUE(source.needs.empty());
        continue;
      }
      ASSERT_EQ(source.needs.size(), 1u);
      EXPECT_GE(source.needs[0], kWidth * kHeight * 2);
      if (kSanitized) continue;  // mallinfo2 does not see a sanitizer's memory.
      // Besides the counted memory, only memory for a few rows may be allocated.
      EXPECT_GE(taken + 1, source.needs[0]);
      EXPECT_LT(taken, source.needs[0] + (1 << 20));
    }
  }
}

TEST(ImageScratchTest, DecodingIsCancelledIfItsMemoryIsRefused) {
  const std::string jpeg = MakeJpeg({.name = "", .progressive = true}, 64, 48, 3);
  absl::StatusOr<JpegDecoder> decoder = JpegDecoder::Create();
  ASSERT_THAT(decoder, IsOk());
  std::vector<uint8_t> pixels(size_t{64} * 48 * 3);
  const CropRect whole = {.y = 0, .x = 0, .height = 48, .width = 64};
  {
    NotingSource source;
    source.gives = false;
    const ScratchScope scope(source);
    ASSERT_THAT(decoder->ReadHeader(jpeg), IsOk());
    EXPECT_THAT(decoder->Decode(whole, absl::MakeSpan(pixels)),
                StatusIs(absl::StatusCode::kCancelled, testing::_));
  }
  // Outside the scope nothing is counted.
  ASSERT_THAT(decoder->ReadHeader(jpeg), IsOk());
  EXPECT_THAT(decoder->Decode(whole, absl::MakeSpan(pixels)), IsOk());
}

}  // namespace
}  // namespace systole
