#include "core/http/http_headers.h"

#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::Eq;
using ::testing::Optional;
using ::testing::Pair;

TEST(HttpHeadersTest, FindHeaderGivesTheFirstValueAndRemoveHeaderRemovesAll) {
  HttpHeaders headers = {{"a", "1"}, {"b", "2"}, {"a", "3"}};
  EXPECT_EQ(FindHeader(headers, "a"), "1");
  EXPECT_EQ(FindHeader(headers, "c"), "");
  RemoveHeader(headers, "a");
  EXPECT_EQ(FindHeader(headers, "a"), "");
  EXPECT_EQ(FindHeader(headers, "b"), "2");
}

TEST(HttpHeadersTest, ALineIsNameColonValue) {
  EXPECT_THAT(ParseHeaderLine("ETag: \"x: y\" \r\n"), Optional(Pair("etag", "\"x: y\"")));
  EXPECT_THAT(ParseHeaderLine("a:"), Optional(Pair("a", "")));
  for (const char* line : {"", "a", ": b", "a b: c", " a: b", "\xff: c"}) {
    EXPECT_EQ(ParseHeaderLine(line), std::nullopt) << line;
  }
}

TEST(HttpHeadersTest, HeadersWithInvalidNamesOrValuesAreNotSendable) {
  EXPECT_TRUE(IsSendableHeader("if-match", "\"a b\""));
  EXPECT_FALSE(IsSendableHeader("If-Match", "a"));
  EXPECT_FALSE(IsSendableHeader("if match", "a"));
  EXPECT_FALSE(IsSendableHeader("", "a"));
  for (const char* value : {"", "a\r\nb: c", "a\n", "\t", "\x7f", "\xc3\xbc"}) {
    EXPECT_FALSE(IsSendableHeader("a", value)) << value;
  }
}

TEST(HttpHeadersTest, ContentRangeIsParsedAsHalfOpenAndInvalidOnesAreRefused) {
  const std::optional<ContentRange> range = ParseContentRange("bytes 5-9/10");
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->begin, 5u);
  EXPECT_EQ(range->end, 10u);
  EXPECT_THAT(range->total, Optional(Eq(10u)));
  EXPECT_EQ(ParseContentRange("Bytes 0-0/*")->total, std::nullopt);
  EXPECT_EQ(ParseContentRange("bytes */7")->end, 0u);
  EXPECT_THAT(ParseContentRange("bytes */7")->total, Optional(Eq(7u)));
  EXPECT_EQ(ParseContentRange("bytes 0-9223372036854775806/*")->end, uint64_t{INT64_MAX});
  for (const char* text :
       {"", "bytes", "bytes ", "bytes 5-9", "bytes 5-4/10", "bytes 5-10/10", "bytes -9/10",
        "bytes 5-/10", "bytes */*", "bytes 5-9/", "bytes 5-9/x", "bytes 5-9/10 ", "bytes  5-9/10",
        "items 5-9/10", "bytes 0-9223372036854775808/*", "bytes +5-9/10", "bytes 0x5-9/10"}) {
    EXPECT_FALSE(ParseContentRange(text).has_value()) << text;
  }
}

TEST(HttpHeadersTest, AContentLengthIsDigitsAloneAndFitsInt64) {
  EXPECT_THAT(ParseContentLength("0"), Optional(Eq(0u)));
  EXPECT_THAT(ParseContentLength("9223372036854775807"), Optional(Eq(uint64_t{INT64_MAX})));
  for (const char* text : {"", " 1", "1 ", "+1", "-1", "1, 1", "1.0", "9223372036854775808"}) {
    EXPECT_EQ(ParseContentLength(text), std::nullopt) << text;
  }
}

TEST(HttpHeadersTest, RetryAfterIsSecondsOrADateRelativeToTheAnswersDate) {
  const char kDate[] = "Wed, 21 Oct 2026 07:28:00 GMT";
  EXPECT_THAT(ParseRetryAfter("7", ""), Optional(absl::Seconds(7)));
  EXPECT_THAT(ParseRetryAfter("9223372036854775807", ""), Optional(absl::Hours(24)));
  EXPECT_THAT(ParseRetryAfter("Wed, 21 Oct 2026 07:28:30 GMT", kDate), Optional(absl::Seconds(30)));
  EXPECT_THAT(ParseRetryAfter("Tue, 20 Oct 2026 07:28:30 GMT", kDate),
              Optional(absl::ZeroDuration()));
  EXPECT_EQ(ParseRetryAfter("Wed, 21 Oct 2026 07:28:30 GMT", ""), std::nullopt);
  for (const char* text : {"", "soon", "-1", "1.5", "Wed, 21 Oct"}) {
    EXPECT_EQ(ParseRetryAfter(text, kDate), std::nullopt) << text;
  }
}

TEST(HttpHeadersTest, OnlyAStrongEtagOfPrintableAsciiAndBoundedLengthCounts) {
  EXPECT_EQ(StrongEtag("\"abc-1\"", 10), "\"abc-1\"");
  EXPECT_EQ(StrongEtag("\"\"", 10), "\"\"");
  for (const char* text :
       {"", "\"", "abc", "W/\"abc\"", "\"a\"b\"", "\"a b\"", "\"\xff\"", "\"12345678901\""}) {
    EXPECT_EQ(StrongEtag(text, 10), "") << text;
  }
}

}  // namespace
}  // namespace systole
