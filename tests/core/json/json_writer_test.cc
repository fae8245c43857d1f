#include "core/json/json_writer.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(JsonWriterTest, PutsCommasBetweenMembersAndElements) {
  JsonWriter json;
  json.BeginObject().Field("a", 1).Field("b", "x").Key("c").BeginArray();
  json.Int(1).Int(2).BeginObject().EndObject().BeginArray().EndArray().EndArray();
  json.Field("d", true).EndObject();
  EXPECT_EQ(json.text(), R"({"a":1,"b":"x","c":[1,2,{},[]],"d":true})");
}

TEST(JsonWriterTest, WritesNumbersWithoutLoss) {
  JsonWriter json;
  json.BeginArray().Int(std::numeric_limits<int64_t>::min());
  json.Uint(std::numeric_limits<uint64_t>::max()).Double(0.1).Double(3.0);
  json.Double(std::numeric_limits<double>::infinity());
  json.Double(std::numeric_limits<double>::quiet_NaN()).EndArray();
  EXPECT_EQ(json.text(), "[-9223372036854775808,18446744073709551615,0.1,3,null,null]");
}

TEST(JsonWriterTest, EscapesQuotesBackslashesAndControlCharacters) {
  JsonWriter json;
  json.String(absl::string_view("q\" b\\ n\n t\t z\0 d\x7f", 17));
  EXPECT_EQ(json.text(), R"("q\" b\\ n\n t\u0009 z\u0000 d\u007f")");
}

TEST(JsonWriterTest, KeepsValidUtf8AndReplacesInvalidBytes) {
  const struct {
    std::string text;
    std::string want;
  } cases[] = {
      {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8c\xbb", "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x8c\xbb\""},
      {"\xff\xd8", R"("\ufffd\ufffd")"},
      {"a\xc3", R"("a\ufffd")"},                              // Cut short.
      {"\xc0\xaf", R"("\ufffd\ufffd")"},                      // Overlong.
      {"\xe0\x80\xaf", R"("\ufffd\ufffd\ufffd")"},            // Overlong.
      {"\xed\xa0\x80", R"("\ufffd\ufffd\ufffd")"},            // A surrogate.
      {"\xf4\x90\x80\x80", R"("\ufffd\ufffd\ufffd\ufffd")"},  // Above U+10FFFF.
      {"\xf0\x80\x80\x80", R"("\ufffd\ufffd\ufffd\ufffd")"},  // Overlong.
      {"\x80", R"("\ufffd")"},                                // A tail byte without its head.
  };
  for (const auto& c : cases) {
    JsonWriter json;
    EXPECT_EQ(json.String(c.text).text(), c.want);
  }
}

TEST(JsonWriterDeathTest, RefusesBracketsThatDoNotMatch) {
  EXPECT_DEATH(JsonWriter().BeginObject().EndArray(), "check failed");
  EXPECT_DEATH(JsonWriter().BeginObject().text(), "check failed");
}

}  // namespace
}  // namespace systole
