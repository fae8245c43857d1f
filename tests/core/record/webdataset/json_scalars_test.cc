#include "core/record/webdataset/json_scalars.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Scalars = std::vector<std::pair<std::string, JsonScalar>>;

absl::StatusOr<Scalars> Read(absl::string_view text) {
  Scalars scalars;
  const absl::Status status =
      VisitJsonScalars(text, [&scalars](absl::string_view name, JsonScalar value) {
        scalars.emplace_back(std::string(name), std::move(value));
      });
  if (!status.ok()) return status;
  return scalars;
}

JsonScalar Only(absl::string_view value) {
  const absl::StatusOr<Scalars> scalars = Read(absl::StrCat("{\"x\":", value, "}"));
  EXPECT_THAT(scalars, IsOk()) << value;
  return scalars.ok() && scalars->size() == 1 ? scalars->front().second : JsonScalar("none");
}

TEST(JsonScalarsTest, VisitsOnlyScalarMembersOfTheOutermostObject) {
  EXPECT_THAT(
      Read("\n{ \"s\" : \"text\", \"i\":-5,\"f\":0.5, \"t\": true, \"f\":false,\r\n\t\"n\": null, "
           "\"o\": {\"deep\": 1}, \"l\": [1, [], {}, [\"x\", {\"y\": 2}]], \"\": 7 } "),
      IsOkAndHolds(ElementsAre(Pair("s", JsonScalar("text")), Pair("i", JsonScalar(int64_t{-5})),
                               Pair("f", JsonScalar(0.5f)), Pair("t", JsonScalar(int64_t{1})),
                               Pair("f", JsonScalar(int64_t{0})),
                               Pair("", JsonScalar(int64_t{7})))));
}

TEST(JsonScalarsTest, OnlyATopLevelObjectHasMembers) {
  for (const char* text : {"[]", "[{\"a\": 1}]", "\"a\"", "1", "null", "{}", " { } "}) {
    EXPECT_THAT(Read(text), IsOkAndHolds(IsEmpty())) << text;
  }
}

TEST(JsonScalarsTest, WholeNumbersThatFitAreInt64AndOthersFloats) {
  EXPECT_EQ(Only("9223372036854775807"), JsonScalar(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(Only("-9223372036854775808"), JsonScalar(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(Only("9223372036854775808"), JsonScalar(9223372036854775808.0f));
  EXPECT_EQ(Only("-0"), JsonScalar(int64_t{0}));
  EXPECT_EQ(Only("1.0"), JsonScalar(1.0f));
  EXPECT_EQ(Only("1e2"), JsonScalar(100.0f));
  EXPECT_EQ(Only("-1.5E+1"), JsonScalar(-15.0f));
  EXPECT_EQ(Only("0.1"), JsonScalar(0.1f));
  EXPECT_EQ(Only("1e-400"), JsonScalar(0.0f));
  EXPECT_EQ(Only("-0.0e-999999"), JsonScalar(0.0f));
  EXPECT_EQ(Only("3.4028234663852886e38"), JsonScalar(std::numeric_limits<float>::max()));
  EXPECT_EQ(Only("Infinity"), JsonScalar(std::numeric_limits<float>::infinity()));
  EXPECT_EQ(Only("-Infinity"), JsonScalar(-std::numeric_limits<float>::infinity()));
  EXPECT_TRUE(std::isnan(std::get<float>(Only("NaN"))));
}

TEST(JsonScalarsTest, EscapesBecomeTheirCharacters) {
  EXPECT_EQ(Only(R"("\"\\\/\b\f\n\r\t")"), JsonScalar("\"\\/\b\f\n\r\t"));
  EXPECT_EQ(Only(R"("\u0041\u00e4\u2192\ud83c\udf37")"), JsonScalar("Aä→🌷"));
  EXPECT_EQ(Only("\"ä→🌷\""), JsonScalar("ä→🌷"));
  EXPECT_EQ(Only(R"("\u0000")"), JsonScalar(std::string(1, '\0')));
  EXPECT_THAT(Read(R"({"\u0041": 1})"),
              IsOkAndHolds(ElementsAre(Pair("A", JsonScalar(int64_t{1})))));
}

TEST(JsonScalarsTest, InvalidJsonIsDataLossWithAReasonAndAPosition) {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {
      {"", "the text ends where a value should be at byte 0 of 0"},
      {"{", "want a member's name in quotes at byte 1"},
      {"{\"a\"", "want ':' after a member's name"},
      {"{\"a\":", "the text ends where a value should be"},
      {"{\"a\":1", "want ',' or '}' after a member at byte 6"},
      {"{\"a\":1,}", "want a member's name in quotes at byte 7"},
      {"{a:1}", "want a member's name in quotes"},
      {"[1,]", "want a value at byte 3"},
      {"[1 2]", "want ',' or ']' after an element"},
      {"1 2", "something follows the value at byte 2"},
      {"\"a", "the text ends within a string"},
      {"\"a\\", "the text ends within a string"},
      {"\"\\x\"", "an escape that JSON does not know"},
      {"\"\\u12\"", "want 4 hex digits"},
      {"\"\\u12g4\"", "want 4 hex digits"},
      {"\"\\ud800\"", "half a surrogate pair"},
      {"\"\\udc00\"", "half a surrogate pair"},
      {"\"\\ud800\\u0041\"", "half a surrogate pair"},
      {"\"a\nb\"", "a control character within a string at byte 2"},
      {"01", "a number that begins with 0"},
      {"1.", "want digits after '.'"},
      {".5", "want a value"},
      {"1e", "want digits after 'e'"},
      {"+1", "want a value"},
      {"--1", "want a value"},
      {"tru", "want a value"},
      {"{\"a\":1e39}", "a number too large for a float"},
      {"{\"a\":1e999}", "a number too large for a float"},
      {"\xff", "it is not UTF-8"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(Read(c.text), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(c.message)))
        << c.text;
  }
}

TEST(JsonScalarsTest, NestingAndMembersAreBounded) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_THAT(Read(nested(kMaxJsonDepth)), IsOk());
  EXPECT_THAT(Read(nested(kMaxJsonDepth + 1)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("inside one another")));
  EXPECT_THAT(Read(std::string(1 << 20, '[')),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("inside one another")));
  std::vector<std::string> members;
  for (int i = 0; i < kMaxJsonScalars; ++i) members.push_back(absl::StrCat("\"", i, "\":1"));
  EXPECT_THAT(Read(absl::StrCat("{", absl::StrJoin(members, ","), "}")), IsOk());
  members.push_back("\"more\":1");
  EXPECT_THAT(Read(absl::StrCat("{", absl::StrJoin(members, ","), "}")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("too many members")));
}

}  // namespace
}  // namespace systole
