#include "core/access_token/token_table.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

absl::Time NoonOf(int year, int month, int day) {
  return absl::FromCivil(absl::CivilHour(year, month, day, 12), absl::UTCTimeZone());
}

TEST(TokenTableTest, HashOfTokenMatchesThePublishedSha256Answer) {
  // The known answer of FIPS 180-2, appendix B.1.
  const TokenHash hash = HashOfToken("abc");
  EXPECT_EQ(absl::BytesToHexString(
                absl::string_view(reinterpret_cast<const char*>(hash.data()), hash.size())),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(TokenTableTest, SeveralTokensOfOneNameAreAllGood) {
  const absl::StatusOr<TokenTable> table = TokenTable::Parse(
      absl::StrCat("# the trainers\n\n", TokenLine({.name = "a", .hash = HashOfToken("old")}),
                   TokenLine({.name = "a", .hash = HashOfToken("new")}),
                   TokenLine({.name = "b", .hash = HashOfToken("other")})));
  ASSERT_THAT(table, IsOk());
  for (const auto& [token, name] : {std::pair("old", "a"), {"new", "a"}, {"other", "b"}}) {
    const TokenEntry* entry = table->Find(HashOfToken(token), absl::UnixEpoch());
    ASSERT_NE(entry, nullptr) << token;
    EXPECT_EQ(entry->name, name);
  }
  EXPECT_EQ(table->Find(HashOfToken("none"), absl::UnixEpoch()), nullptr);
}

TEST(TokenTableTest, ATokenIsGoodUntilItsLastDayEnds) {
  const absl::StatusOr<TokenTable> table = TokenTable::Parse(
      TokenLine({.name = "a", .hash = HashOfToken("x"), .last_day = absl::CivilDay(2030, 1, 31)}));
  ASSERT_THAT(table, IsOk());
  EXPECT_NE(table->Find(HashOfToken("x"), NoonOf(2030, 1, 31)), nullptr);
  EXPECT_EQ(table->Find(HashOfToken("x"), NoonOf(2030, 2, 1)), nullptr);
}

TEST(TokenTableTest, TheErrorForAnInvalidLineHasItsNumberAndNotItsText) {
  const std::string good = TokenLine({.name = "a", .hash = HashOfToken("x")});
  const std::string hash = good.substr(2, 64);
  for (const std::string& bad :
       {std::string("a sEcReT"), absl::StrCat("a ", hash, " sEcReT"),
        absl::StrCat("sEcReT! ", hash), absl::StrCat("a ", hash, " 2030-02-31"),
        absl::StrCat("a ", hash, " 2030-1-31"), absl::StrCat("a  ", hash),
        absl::StrCat("a ", hash, " "), absl::StrCat("a ", hash, "\r"),
        absl::StrCat("a ", hash, "00"), absl::StrCat("a ", hash, " 2030-01-31 more"),
        std::string("sEcReT")}) {
    EXPECT_THAT(TokenTable::Parse(absl::StrCat("# one\n", bad, "\n")),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("line 2"), Not(HasSubstr("sEcReT")))))
        << bad;
  }
}

TEST(TokenTableTest, ADuplicateHashIsRefused) {
  const std::string line = TokenLine({.name = "a", .hash = HashOfToken("x")});
  EXPECT_THAT(TokenTable::Parse(line + line),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 2")));
}

TEST(TokenTableTest, TheNumbersOfTokensAndBytesAreBounded) {
  std::string lines;
  for (size_t i = 0; i < kMaxTokens; ++i) {
    lines += TokenLine({.name = "a", .hash = HashOfToken(absl::StrCat(i))});
  }
  EXPECT_THAT(TokenTable::Parse(lines), IsOk());
  lines += TokenLine({.name = "a", .hash = HashOfToken("one more")});
  EXPECT_THAT(TokenTable::Parse(lines),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("4096")));
  EXPECT_THAT(TokenTable::Parse(std::string(kMaxTokenFileBytes + 1, '\n')),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("bytes")));
}

}  // namespace
}  // namespace systole
