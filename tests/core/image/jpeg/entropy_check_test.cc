// Tests in a process whose libjpeg has other internals than its headers say (other_libjpeg.h).
#include "core/image/jpeg/entropy_check.h"

#include <cstdint>
#include <string>
#include <vector>

#include "core/image/jpeg/jpeg_decoder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/image/jpeg/jpeg_fixture.h"
#include "tests/core/image/jpeg/other_libjpeg.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Chooses the libjpeg of one test.
class ScopedLibjpeg {
 public:
  explicit ScopedLibjpeg(OtherLibjpeg other) : before_(other_libjpeg) { other_libjpeg = other; }
  ~ScopedLibjpeg() { other_libjpeg = before_; }

 private:
  const OtherLibjpeg before_;
};

TEST(EntropyCheckTest, TheInstalledLibjpegPassesTheCheck) {
  const ScopedLibjpeg libjpeg(OtherLibjpeg::kNone);
  EXPECT_THAT(CheckJpegEntropyDecoding(), IsOk());
}

TEST(EntropyCheckTest, ALibjpegWhosePixelsDifferFailsTheCheck) {
  const ScopedLibjpeg libjpeg(OtherLibjpeg::kOtherTables);
  EXPECT_THAT(CheckJpegEntropyDecoding(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("gives other pixels for a 4:4:4 test image"),
                             HasSubstr("libjpeg-turbo-2.1.5"))));
}

TEST(EntropyCheckTest, AForeignEntropyDecoderFailsTheCheckAsNotReplaceable) {
  const ScopedLibjpeg libjpeg(OtherLibjpeg::kOtherEntropy);
  EXPECT_THAT(CheckJpegEntropyDecoding(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("cannot replace libjpeg's decoder for a 4:4:4 test image")));
}

// Without the check the pixels would be wrong, as the test ALibjpegWhosePixelsDifferFailsTheCheck
// shows.
TEST(EntropyCheckTest, AfterAFailedCheckEntropyDecodingIsLeftToLibjpeg) {
  // The first decoder of the process is created with kOtherTables, so the process's check fails.
  ASSERT_EQ(other_libjpeg, OtherLibjpeg::kOtherTables);
  JpegDecoder decoder = *JpegDecoder::Create();
  EXPECT_THAT(OwnJpegEntropyDecoding(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("gives other pixels")));
  for (const JpegKind& kind : AllJpegKinds()) {
    if (kind.colour == JpegColour::kCmyk || kind.colour == JpegColour::kCmykNoAdobe ||
        kind.colour == JpegColour::kYcck) {
      continue;  // The oracle does not convert these kinds to RGB.
    }
    const std::string jpeg = MakeJpeg(kind, 83, 45, /*seed=*/4);
    ASSERT_THAT(decoder.ReadHeader(jpeg), IsOk());
    std::vector<uint8_t> pixels(30 * 40 * 3);
    ASSERT_THAT(decoder.Decode({11, 21, 30, 40}, absl::MakeSpan(pixels)), IsOk());
    const ScopedLibjpeg libjpeg(OtherLibjpeg::kNone);
    EXPECT_EQ(pixels, Cut(DecodeWhole(jpeg, {}).pixels, 83, 3, 11, 21, 30, 40)) << kind.name;
    EXPECT_TRUE(decoder.by_library()) << kind.name;
  }
}

}  // namespace
}  // namespace systole
