#include "server/traces/slow_steps_page.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

SlowStep Step(const std::string& dataset) {
  SlowStep step;
  step.dataset = dataset;
  step.step = 12;
  step.core_begin = 0;
  step.core_end = 8;
  step.slowest_core = 3;
  step.times = {.read = absl::Microseconds(1'512'340),
                .make = absl::Milliseconds(20),
                .wait = absl::Milliseconds(3),
                .send = absl::Microseconds(450)};
  step.ended = absl::FromUnixMillis(1769903999123);
  return step;
}

TEST(SlowStepsPageTest, EachStepIsARowWithTheTimesOfItsStages) {
  SlowStep traced = Step("flowers");
  traced.trace = {.high = 0x4bf92f3577b34da6, .low = 0xa3ce929d0e0e4736};
  traced.core_begin = 7;
  const std::string page = SlowStepsHtml({.made = {Step("flowers")}, .sent = {traced}});
  EXPECT_THAT(
      page,
      HasSubstr("<tr><td class=\"text\">2026-01-31T23:59:59.123Z</td><td class=\"text\">flowers"
                "</td><td>12</td><td>0 to 7</td><td>3</td><td>1512.3</td><td>20.0</td>"
                "<td>3.0</td><td>0.5</td><td class=\"text\"></td></tr>\n"));
  EXPECT_THAT(page, HasSubstr("<td>7</td><td>3</td>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"text\">4bf92f3577b34da6a3ce929d0e0e4736</td></tr>"));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("no step yet"))));
}

TEST(SlowStepsPageTest, DatasetNamesAreEscapedInHtml) {
  const std::string page =
      SlowStepsHtml({.made = {Step("<script>alert('1')</script>&\"")}, .sent = {}});
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert("));
  EXPECT_THAT(page, HasSubstr("no step yet"));
}

TEST(SlowStepsPageTest, JsonListsTheSlowStepsWithTimesInSeconds) {
  SlowStep traced = Step("a\"b");
  traced.trace = {.high = 0, .low = 1};
  EXPECT_EQ(SlowStepsJson({.made = {Step("flowers")}, .sent = {traced}}),
            "{\"slowest_made\":[{\"ended\":\"2026-01-31T23:59:59.123Z\",\"dataset\":\"flowers\","
            "\"step\":12,\"core_begin\":0,\"core_end\":8,\"slowest_core\":3,"
            "\"read_seconds\":1.51234,\"make_seconds\":0.02,\"wait_seconds\":0.003,"
            "\"send_seconds\":0.00045}],\"slowest_sent\":[{\"ended\":\"2026-01-31T23:59:59.123Z\","
            "\"dataset\":\"a\\\"b\",\"step\":12,\"core_begin\":0,\"core_end\":8,"
            "\"slowest_core\":3,\"read_seconds\":1.51234,\"make_seconds\":0.02,"
            "\"wait_seconds\":0.003,\"send_seconds\":0.00045,"
            "\"trace\":\"00000000000000000000000000000001\"}]}\n");
  EXPECT_EQ(SlowStepsJson({}), "{\"slowest_made\":[],\"slowest_sent\":[]}\n");
}

}  // namespace
}  // namespace systole
