// Compares the small parts of a schedule with naive implementations.
#include <cstdint>
#include <set>

#include "client/schedule/arrived_steps.h"
#include "client/schedule/running_clock.h"
#include "client/schedule/step_pace.h"
#include "core/random/counter_rng.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(ArrivedStepsTest, MatchesANaiveImplementationWithASet) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    CounterRng random(seed, 0, 0, 0);
    const int64_t first = random.UniformInt(0, 100);
    const int64_t window = random.UniformInt(1, 20);
    ArrivedSteps steps(first, window);
    std::set<int64_t> arrived;
    int64_t next = first;
    for (int i = 0; i < 500; ++i) {
      const int64_t step = next + random.UniformInt(0, window);
      if (!arrived.contains(step)) {
        steps.Add(step);
        arrived.insert(step);
      }
      if (random.UniformInt(0, 2) == 0 && arrived.contains(next)) {
        steps.Take();
        ++next;
      }
      ASSERT_EQ(steps.next(), next);
      int64_t missing = next;
      while (arrived.contains(missing)) ++missing;
      ASSERT_EQ(steps.FirstMissing(), missing);
      for (int64_t at = next - 2; at < next + window + 2; ++at) {
        ASSERT_EQ(steps.Has(at), at < next || arrived.contains(at));
        ASSERT_EQ(steps.InWindow(at), at < next + window);
      }
    }
  }
}

TEST(StepPaceTest, LateAfterIsOneSecondPlusTwiceTheAverageStepTime) {
  StepPace pace;
  EXPECT_EQ(pace.late_after(), absl::InfiniteDuration());
  pace.Arrived(absl::Seconds(3));
  EXPECT_EQ(pace.late_after(), absl::Seconds(7));
  for (int i = 0; i < 200; ++i) pace.Arrived(absl::Seconds(1));
  EXPECT_LE(pace.late_after(), absl::Seconds(3.01));
}

TEST(StepPaceTest, EachMoveDoublesLateAfterUpToABoundUntilAStepArrives) {
  StepPace pace;
  pace.Arrived(absl::ZeroDuration());
  for (const int seconds : {1, 2, 4, 8, 16, 32, 64, 64, 64}) {
    EXPECT_EQ(pace.late_after(), absl::Seconds(seconds));
    pace.Moved();
  }
  pace.Arrived(absl::ZeroDuration());
  EXPECT_EQ(pace.late_after(), absl::Seconds(1));
}

TEST(RunningClockTest, TimeInWhichTheProcessDidNotRunDoesNotCount) {
  RunningClock clock;
  EXPECT_EQ(clock.See(absl::Seconds(10)), absl::Seconds(10));
  clock.WakeAt(absl::Seconds(11));
  // The clock is late because of load, not because the process was stopped.
  EXPECT_EQ(clock.See(absl::Seconds(13)), absl::Seconds(13));
  clock.WakeAt(absl::Seconds(14));
  EXPECT_EQ(clock.See(absl::Seconds(113)), absl::Seconds(13));
  EXPECT_EQ(clock.At(absl::Seconds(120)), absl::Seconds(20));
  clock.WakeAt(absl::Seconds(14));
  EXPECT_EQ(clock.wake_at(), absl::Seconds(114));
}

}  // namespace
}  // namespace systole
