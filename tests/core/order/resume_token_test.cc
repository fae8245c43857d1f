#include "core/order/resume_token.h"

#include <cctype>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/checksum/crc32c.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

const ResumeToken kToken = {.dataset_fingerprint = 0x0123456789abcdef,
                            .order_fingerprint = 0xfedcba9876543210,
                            .content_version = "1+jpeg62",
                            .position = {.epoch = 1000, .examples = 1000000000}};

auto Invalid(const char* what) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
}

// Appends the checksum that `text` (ending with ':') needs.
std::string Sealed(const std::string& text) {
  return absl::StrCat(text, absl::Hex(Crc32c(text), absl::kZeroPad8));
}

TEST(ResumeTokenTest, EncodeWritesTheDocumentedFormat) {
  EXPECT_EQ(kToken.Encode(),
            Sealed("systole2:0123456789abcdef:fedcba9876543210:1000:1000000000:1+jpeg62:"));
}

TEST(ResumeTokenTest, DecodeInvertsEncode) {
  EXPECT_THAT(ResumeToken::Decode(kToken.Encode()), IsOkAndHolds(kToken));
  EXPECT_THAT(ResumeToken::Decode(ResumeToken().Encode()), IsOkAndHolds(ResumeToken()));
  const ResumeToken extreme = {.dataset_fingerprint = ~uint64_t{0},
                               .order_fingerprint = 0,
                               .content_version = std::string(200, '\xff'),
                               .position = {.epoch = std::numeric_limits<int64_t>::max(),
                                            .examples = std::numeric_limits<int64_t>::max()}};
  EXPECT_THAT(ResumeToken::Decode(extreme.Encode()), IsOkAndHolds(extreme));
}

TEST(ResumeTokenTest, WeightChangesAreEncodedAfterTheOrderFingerprint) {
  ResumeToken token = kToken;
  token.weight_changes = {0x0, 0xfe};
  EXPECT_EQ(
      token.Encode(),
      Sealed("systole2:0123456789abcdef:fedcba9876543210+0000+00fe:1000:1000000000:1+jpeg62:"));
  EXPECT_THAT(ResumeToken::Decode(token.Encode()), IsOkAndHolds(token));
  token.weight_changes.assign(64, 0xffff);
  token.content_version = std::string(200, '\xff');
  token.position = {.epoch = std::numeric_limits<int64_t>::max(),
                    .examples = std::numeric_limits<int64_t>::max()};
  EXPECT_THAT(ResumeToken::Decode(token.Encode()), IsOkAndHolds(token));
}

TEST(ResumeTokenTest, ContentVersionsAreEscapedToPlainCharactersAndRestored) {
  ResumeToken token = kToken;
  token.content_version = std::string("a:b%c d\n\0\x7f\xe9 \"", 13);
  const std::string text = token.Encode();
  for (const char c : text) {
    EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c)) ||
                std::string(":.%+-_").find(c) != std::string::npos)
        << c;
  }
  EXPECT_THAT(ResumeToken::Decode(text), IsOkAndHolds(token));
}

TEST(ResumeTokenTest, EveryFlippedBitIsNoticed) {
  const std::string text = kToken.Encode();
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string damaged = text;
    damaged[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    EXPECT_FALSE(ResumeToken::Decode(damaged).ok()) << damaged;
  }
}

TEST(ResumeTokenTest, EveryTruncationIsNoticed) {
  const std::string text = kToken.Encode();
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ResumeToken::Decode(text.substr(0, size)).ok()) << size;
  }
}

TEST(ResumeTokenTest, ErrorsSayWhatIsWrong) {
  EXPECT_THAT(ResumeToken::Decode(""), Invalid("want \"systole2:\""));
  EXPECT_THAT(ResumeToken::Decode("ckpt-100\n.index"),
              Invalid("begins with \"ckpt-100\\n.index\""));
  EXPECT_THAT(ResumeToken::Decode("systole3:x"), Invalid("format \"systole3\""));
  EXPECT_THAT(ResumeToken::Decode(Sealed("systole1:0123456789abcdef:fedcba9876543210:5:v:")),
              Invalid("is of an older release"));
  EXPECT_THAT(ResumeToken::Decode("systole2:0123456789abcdef:fedc"), Invalid("cut short"));
  EXPECT_THAT(ResumeToken::Decode(std::string(5000, 'x')), Invalid("5000 bytes"));
  EXPECT_THAT(
      ResumeToken::Decode(absl::StrReplaceAll(kToken.Encode(), {{"1000000000", "1000000001"}})),
      Invalid("a character is wrong"));
  EXPECT_THAT(ResumeToken::Decode(absl::StrCat(kToken.Encode(), "\n")), Invalid("checksum"));
}

// All these tokens have good checksums, also those of a form that ResumeToken never writes.
TEST(ResumeTokenTest, OnlyTheCanonicalTextIsAccepted) {
  const std::string a = "systole2:0123456789abcdef:fedcba9876543210:3:";
  EXPECT_THAT(ResumeToken::Decode(Sealed(a + "5:v:")), IsOk());
  EXPECT_THAT(ResumeToken::Decode(Sealed(a + "05:v:")), Invalid("form"));
  EXPECT_THAT(ResumeToken::Decode(Sealed(a + "+5:v:")), Invalid("form"));
  EXPECT_THAT(ResumeToken::Decode(Sealed(a + " 5:v:")), Invalid("form"));
  EXPECT_THAT(ResumeToken::Decode(Sealed(a + "-5:v:")), Invalid("examples \"-5\""));
  EXPECT_THAT(ResumeToken::Decode(Sealed(a + "9223372036854775808:v:")), Invalid("examples"));
  EXPECT_THAT(ResumeToken::Decode(Sealed("systole2:0123456789abcdef:fedcba9876543210:-3:5:v:")),
              Invalid("epoch \"-3\""));
  EXPECT_THAT(ResumeToken::Decode(Sealed(a + "5:%4:")), Invalid("content version"));
  EXPECT_THAT(ResumeToken::Decode(Sealed(a + "5:%zz:")), Invalid("content version"));
  EXPECT_THAT(ResumeToken::Decode(Sealed(a + "5:%41:")), Invalid("form"));  // 'A' needs no escape.
  EXPECT_THAT(ResumeToken::Decode(Sealed(a + "5:" + std::string(201, 'v') + ":")), Invalid("200"));
  EXPECT_THAT(ResumeToken::Decode(Sealed("systole2:0123:fedcba9876543210:3:5:v:")),
              Invalid("form"));
  EXPECT_THAT(ResumeToken::Decode(Sealed("systole2:xyz:fedcba9876543210:3:5:v:")), Invalid("hex"));
  const auto with_changes = [](const std::string& changes) {
    return ResumeToken::Decode(
        Sealed(absl::StrCat("systole2:0123456789abcdef:fedcba9876543210", changes, ":3:5:v:")));
  };
  EXPECT_THAT(with_changes("+00ff"), IsOk());
  EXPECT_THAT(with_changes("+"), Invalid("wrong hash"));
  EXPECT_THAT(with_changes("+xyz1"), Invalid("wrong hash"));
  EXPECT_THAT(with_changes("+10000"), Invalid("wrong hash"));
  EXPECT_THAT(with_changes("+ff"), Invalid("form"));
  EXPECT_THAT(with_changes("+00FF"), Invalid("form"));
  std::string many;
  for (int i = 0; i < 65; ++i) many += "+0000";
  EXPECT_THAT(with_changes(many), Invalid("wrong hash"));
}

}  // namespace
}  // namespace systole
