#include "core/text/duration_text.h"

#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

TEST(DurationTextTest, ANumberAloneIsSeconds) {
  EXPECT_EQ(ParseDurationText("3"), absl::Seconds(3));
  EXPECT_EQ(ParseDurationText("0.2"), absl::Milliseconds(200));
  EXPECT_EQ(ParseDurationText("0"), absl::ZeroDuration());
}

TEST(DurationTextTest, UnitsAndSignsAreParsed) {
  EXPECT_EQ(ParseDurationText("3s"), absl::Seconds(3));
  EXPECT_EQ(ParseDurationText("500ms"), absl::Milliseconds(500));
  EXPECT_EQ(ParseDurationText("1m30s"), absl::Seconds(90));
  EXPECT_EQ(ParseDurationText("-1s"), absl::Seconds(-1));
}

TEST(DurationTextTest, InvalidDurationsAreRefused) {
  for (const char* text : {"", "s", "3 apples", "3sec", "nan", "inf", "-inf", "1e999"}) {
    EXPECT_EQ(ParseDurationText(text), std::nullopt) << text;
  }
}

TEST(DurationTextTest, ADurationOutOfBoundsIsRefusedWithTheBounds) {
  const absl::Duration least = absl::Milliseconds(100);
  EXPECT_THAT(CheckDuration("--wait", least, least, absl::Hours(1)), IsOk());
  EXPECT_THAT(CheckDuration("--wait", absl::Hours(1), least, absl::Hours(1)), IsOk());
  for (const absl::Duration wrong : {absl::ZeroDuration(), absl::Hours(2)}) {
    EXPECT_THAT(CheckDuration("--wait", wrong, least, absl::Hours(1)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want 100ms to 1h")));
  }
}

}  // namespace
}  // namespace systole
