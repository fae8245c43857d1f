#include "server/otlp/otlp_json.h"

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(OtlpJsonTest, ASpanIsWrittenAsTheProtocolSays) {
  const Span span = {
      .trace = {.high = 0x4bf92f3577b34da6, .low = 0xa3ce929d0e0e4736},
      .span = 0xf067aa0ba902b7,
      .parent = 0x1,
      .parent_is_remote = true,
      .trace_state = "a=b",
      .name = "systole.v1.Systole/StreamSteps",
      .is_call = true,
      .begin = absl::FromUnixNanos(1769903999123456789),
      .end = absl::FromUnixNanos(1769904000000000001),
      .attributes = {{"text", "\"a\"\n"}, {"whole", int64_t{1} << 60}, {"real", 0.25}},
      .error = "no room"};
  EXPECT_EQ(
      OtlpJsonOf({span}, {{"service.name", "feeds"}}, "1.2.3"),
      R"({"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":)"
      R"({"stringValue":"feeds"}}]},"scopeSpans":[{"scope":{"name":"systole","version":"1.2.3"},)"
      R"("spans":[{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7",)"
      R"("traceState":"a=b","parentSpanId":"0000000000000001","flags":769,)"
      R"("name":"systole.v1.Systole/StreamSteps","kind":2,)"
      R"("startTimeUnixNano":"1769903999123456789","endTimeUnixNano":"1769904000000000001",)"
      R"("attributes":[{"key":"text","value":{"stringValue":"\"a\"\n"}},)"
      R"({"key":"whole","value":{"intValue":"1152921504606846976"}},)"
      R"({"key":"real","value":{"doubleValue":0.25}}],)"
      R"("status":{"message":"no room","code":2}}]}]}]})");
}

TEST(OtlpJsonTest, UnsetFieldsOfASpanAreLeftOut) {
  const std::string json = OtlpJsonOf(
      {{.trace = {.high = 0, .low = 1}, .span = 2, .name = "step"}, {.name = "other"}}, {}, "");
  EXPECT_THAT(json, HasSubstr(R"("traceId":"00000000000000000000000000000001",)"
                              R"("spanId":"0000000000000002","flags":257,"name":"step","kind":1)"));
  EXPECT_THAT(json, HasSubstr("},{"));
  for (const char* name : {"parentSpanId", "traceState", "status"}) {
    EXPECT_THAT(json, Not(HasSubstr(name)));
  }
}

TEST(OtlpJsonTest, InvalidUtf8BecomesAReplacementCharacter) {
  const std::string json =
      OtlpJsonOf({{.span = 1, .name = "x", .attributes = {{"a", "\xff\x01"}}}}, {}, "");
  EXPECT_THAT(json, HasSubstr("\\ufffd\\u0001"));
}

}  // namespace
}  // namespace systole
