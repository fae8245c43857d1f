#include "client/emulator/timing/utilisation.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

StepRecord Record(int wait_ms, int compute_ms) {
  return {.wait = absl::Milliseconds(wait_ms),
          .compute = absl::Milliseconds(compute_ms),
          .infeed_stall = {absl::Milliseconds(wait_ms), absl::ZeroDuration()}};
}

TEST(UtilisationTest, ARunOfOneStepHasNoAu) {
  UtilisationMeter meter;
  EXPECT_FALSE(meter.result().au.has_value());
  meter.Add(Record(500, 10));
  const Utilisation result = meter.result();
  EXPECT_EQ(result.steps, 0);
  EXPECT_FALSE(result.au.has_value());
  EXPECT_FALSE(result.infeed.has_value());
  EXPECT_EQ(result.cores.size(), 2u);
}

TEST(UtilisationTest, TheFirstStepIsLeftOut) {
  UtilisationMeter meter;
  meter.Add(Record(500, 10));
  meter.Add(Record(30, 10));
  const Utilisation result = meter.result();
  EXPECT_EQ(result.steps, 1);
  EXPECT_EQ(result.total, absl::Milliseconds(40));
  EXPECT_EQ(result.au, 0.25);
  EXPECT_EQ(result.infeed->average, 0.75);
  EXPECT_EQ(result.cores[0].infeed_stall, absl::Milliseconds(30));
  EXPECT_EQ(result.cores[1].barrier, absl::Milliseconds(30));
}

TEST(UtilisationTest, OverheadDoesNotLowerTheAu) {
  UtilisationMeter meter;
  meter.Add(Record(0, 10));
  StepRecord late = Record(0, 10);
  late.overhead = absl::Milliseconds(7);
  meter.Add(late);
  EXPECT_EQ(meter.result().overhead, absl::Milliseconds(7));
  EXPECT_EQ(meter.result().au, 1.0);
}

// The run has 10 ms of compute, and 30 ms of waits for steps that never come. The 30 ms count in
// the total, but not in the infeed stall of any core.
TEST(UtilisationTest, AnUnfinishedWaitAtTheEndLowersTheAu) {
  UtilisationMeter meter;
  meter.AddOpenWait(absl::Milliseconds(400));  // Nothing has come yet, so this does not count.
  EXPECT_FALSE(meter.result().au.has_value());
  meter.Add(Record(500, 10));
  meter.AddOpenWait(absl::Milliseconds(10));
  EXPECT_EQ(meter.result().au, 0.0);  // The use is known, and it is zero.
  meter.Add(Record(0, 10));
  meter.AddOpenWait(absl::Milliseconds(20));
  EXPECT_EQ(meter.result().au, 0.25);
  EXPECT_EQ(meter.result().open_wait, absl::Milliseconds(30));
  EXPECT_EQ(meter.result().cores[0].infeed_stall, absl::ZeroDuration());
}

TEST(UtilisationTest, ThresholdsAreThoseOfXprofAndMlperfStorage) {
  EXPECT_EQ(InfeedVerdict(0.0), "not input-bound");
  EXPECT_EQ(InfeedVerdict(0.0499), "not input-bound");
  EXPECT_EQ(InfeedVerdict(0.05), "moderately input-bound");
  EXPECT_EQ(InfeedVerdict(0.1999), "moderately input-bound");
  EXPECT_EQ(InfeedVerdict(0.2), "highly input-bound");
  EXPECT_EQ(AuVerdict(0.9), "at least 90 %");
  EXPECT_EQ(AuVerdict(0.8999), "at least 70 %");
  EXPECT_EQ(AuVerdict(0.7), "at least 70 %");
  EXPECT_EQ(AuVerdict(0.6999), "below 70 %");
}

}  // namespace
}  // namespace systole::emulator
