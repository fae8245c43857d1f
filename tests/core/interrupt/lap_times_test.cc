#include "core/interrupt/lap_times.h"

#include <functional>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

absl::Duration Us(int microseconds) { return absl::Microseconds(microseconds); }

class LapTimesTest : public ::testing::Test {
 protected:
  // Lets this much time pass.
  void Pass(int microseconds) { now_ += Us(microseconds); }

  absl::Duration now_ = absl::Hours(5);
  const std::function<absl::Duration()> clock_ = [this] { return now_; };
};

TEST_F(LapTimesTest, ALapCountsForThePartNotedAtItsEnd) {
  LapTimes laps(clock_);
  Pass(3);
  NoteLap(0);
  Pass(4);
  NoteLap(LapTimes::kParts - 1);
  Pass(5);
  NoteLap(0);
  const LapTimes::Times times = laps.Take();
  EXPECT_EQ(times.parts[0], Us(8));
  EXPECT_EQ(times.parts[1], Us(0));
  EXPECT_EQ(times.parts[LapTimes::kParts - 1], Us(4));
  EXPECT_EQ(times.all, Us(12));
}

TEST_F(LapTimesTest, TimeWithoutAValidPartCountsOnlyInTheTotal) {
  LapTimes laps(clock_);
  for (const int part : {LapTimes::kNoPart, LapTimes::kParts, -1000, 1 << 30}) {
    Pass(1);
    NoteLap(part);
  }
  Pass(2);  // Up to Take().
  const LapTimes::Times times = laps.Take();
  for (const absl::Duration part : times.parts) EXPECT_EQ(part, Us(0));
  EXPECT_EQ(times.all, Us(6));
}

TEST_F(LapTimesTest, TakeResetsTheTimes) {
  LapTimes laps(clock_);
  Pass(3);
  NoteLap(2);
  laps.Take();
  Pass(4);
  NoteLap(2);
  const LapTimes::Times times = laps.Take();
  EXPECT_EQ(times.parts[2], Us(4));
  EXPECT_EQ(times.all, Us(4));
}

TEST_F(LapTimesTest, NoteLapCountsOnlyInTheInnermostLapTimes) {
  NoteLap(0);
  LapTimes outer(clock_);
  {
    LapTimes inner(clock_);
    Pass(3);
    NoteLap(1);
    EXPECT_EQ(inner.Take().parts[1], Us(3));
  }
  Pass(4);
  NoteLap(1);
  EXPECT_EQ(outer.Take().parts[1], Us(7));
}

}  // namespace
}  // namespace systole
