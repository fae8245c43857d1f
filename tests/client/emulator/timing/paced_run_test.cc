// Tests the pacing loop with a simulated clock. The clock moves on only when the loop sleeps, when
// the loop pops a step, and when a test moves it. Times in comments are in ms.
#include "client/emulator/timing/paced_run.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

absl::Duration Ms(double ms) { return absl::Milliseconds(1) * ms; }

// The infeeds of all cores, and the clock. Step i arrives period * i after the beginning, and later
// on the cores in `late`.
class World {
 public:
  explicit World(int cores = 1) : next_(static_cast<size_t>(cores)) {}

  absl::Duration now = absl::Hours(5);  // A real clock does not begin at 0, either.
  absl::Duration period;                // 0: all steps are there from the start.
  absl::Duration pop_time;              // How long a pop takes, besides the wait.
  absl::Duration oversleep;
  int64_t steps = 1'000'000;
  std::map<int, absl::Duration> late;  // The delay of each late core.
  int64_t skips_at = -1, ends_early_at = -1, fails_at = -1;
  int64_t cancelled_at = -1;
  absl::Duration cancelled_after;  // How long the cancelled pop waits.

  absl::StatusOr<std::optional<SliceArrival>> Pop(int core) {
    const int64_t step = next_[static_cast<size_t>(core)]++;
    if (step == cancelled_at) {
      now += cancelled_after;
      return absl::CancelledError("enough");
    }
    if (step == fails_at) return absl::UnavailableError("no server");
    if (step >= steps || (core == 1 && step == ends_early_at)) return std::nullopt;
    const absl::Duration arrived_at =
        begin_ + period * step + (late.contains(core) ? late[core] : absl::ZeroDuration());
    now = std::max(now, arrived_at) + pop_time;
    return SliceArrival{.step = core == 1 && step == skips_at ? step + 1 : step,
                        .arrived_at = arrived_at};
  }

  absl::StatusOr<PacedResult> Run(PacedOptions options) {
    options.infeed.num_cores = static_cast<int>(next_.size());
    options.pacer = {.now = [this] { return now; },
                     .sleep = [this](absl::Duration length) { now += length + oversleep; },
                     .spin = absl::ZeroDuration()};
    return RunPaced([this](int core) { return Pop(core); }, options);
  }

 private:
  const absl::Duration begin_ = now;
  std::vector<int64_t> next_;
};

TEST(PacedRunTest, AFeedThatIsAlwaysReadyGivesFullUse) {
  World world(/*cores=*/8);
  world.pop_time = Ms(0.01);  // 80 us a step, for 8 cores.
  const absl::StatusOr<PacedResult> result =
      world.Run({.infeed = {.step_time = Ms(1)}, .max_steps = 1001});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->books.steps(), 1001);
  EXPECT_EQ(result->books.utilisation().au, 1.0);
  EXPECT_EQ(result->wall_au, 1.0);  // There is no drift: 1001 steps took 1001 ms.
  EXPECT_EQ(world.now, absl::Hours(5) + Ms(1001));
  EXPECT_EQ(result->overhead.max_noticing, Ms(0.08));
  EXPECT_EQ(result->overhead.noticing, Ms(80.08));
  EXPECT_EQ(result->overhead.max_late, Ms(0));
  EXPECT_EQ(result->books.utilisation().overhead, Ms(0));
}

TEST(PacedRunTest, OversleepingDoesNotAddUp) {
  World world;
  world.oversleep = Ms(0.3);
  const absl::StatusOr<PacedResult> result =
      world.Run({.infeed = {.step_time = Ms(1)}, .max_steps = 1001});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(world.now, absl::Hours(5) + Ms(1001.3));
  EXPECT_EQ(result->books.utilisation().au, 1.0);
  EXPECT_THAT(*result->wall_au, DoubleNear(1000 / 1000.3, 1e-9));
  EXPECT_EQ(result->overhead.max_late, Ms(0.3));
}

// A step takes 10, and its slice comes every 15, as in
// InfeedClockTest.ASliceThatIsAlwaysLateStallsEveryStep.
TEST(PacedRunTest, ALateFeedIsAStall) {
  World world;
  world.period = Ms(15);
  const absl::StatusOr<PacedResult> result =
      world.Run({.infeed = {.step_time = Ms(10)}, .max_steps = 11});
  ASSERT_THAT(result, IsOk());
  const Utilisation utilisation = result->books.utilisation();
  EXPECT_THAT(*utilisation.au, DoubleNear(2.0 / 3, 1e-12));
  EXPECT_EQ(utilisation.cores[0].infeed_stall, Ms(50));
  EXPECT_EQ(result->books.waits().max(), Ms(5));
  EXPECT_THAT(*result->wall_au, DoubleNear(2.0 / 3, 1e-12));
}

// Steps take 10. The slices of both cores come every 14, but one core gets each slice 4 later than
// the other core. The late core stalls for 4 in every step, whether the loop pops its slice first
// or second. The other core is fed just in time, and waits 4 at the barrier.
TEST(PacedRunTest, AStallIsBookedOnTheCoreThatWasLate) {
  for (const int late_core : {0, 1}) {
    World world(/*cores=*/2);
    world.period = Ms(14);
    world.late[late_core] = Ms(4);
    const absl::StatusOr<PacedResult> result =
        world.Run({.infeed = {.step_time = Ms(10)}, .max_steps = 6});
    ASSERT_THAT(result, IsOk());
    const Utilisation utilisation = result->books.utilisation();
    EXPECT_THAT(*utilisation.au, DoubleNear(10.0 / 14, 1e-12));
    const CoreBooks& late = utilisation.cores[static_cast<size_t>(late_core)];
    const CoreBooks& fed = utilisation.cores[static_cast<size_t>(1 - late_core)];
    EXPECT_EQ(late.infeed_stall, Ms(20));
    EXPECT_EQ(late.barrier, Ms(0));
    EXPECT_EQ(fed.infeed_stall, Ms(0));
    EXPECT_EQ(fed.barrier, Ms(20));
  }
}

// A pop takes 3 and a step takes 1, so the loop is slower than the chip. This must not count as a
// stall of a core.
TEST(PacedRunTest, TheEmulatorsOwnSlownessIsOverheadAndNeverAStall) {
  World world;
  world.pop_time = Ms(3);
  const absl::StatusOr<PacedResult> result =
      world.Run({.infeed = {.step_time = Ms(1)}, .max_steps = 101});
  ASSERT_THAT(result, IsOk());
  const Utilisation utilisation = result->books.utilisation();
  EXPECT_EQ(utilisation.au, 1.0);
  EXPECT_EQ(utilisation.cores[0].infeed_stall, Ms(0));
  EXPECT_EQ(utilisation.cores[0].barrier, Ms(0));
  EXPECT_GT(utilisation.overhead, Ms(190));
  EXPECT_THAT(*result->wall_au, DoubleNear(1.0 / 3, 0.01));
}

TEST(PacedRunTest, APauseOfTheEmulatorMovesTheClockOnAsOverhead) {
  World world;
  absl::Duration hiccup = Ms(50);
  std::vector<StepRecord> records;
  const absl::StatusOr<PacedResult> result =
      world.Run({.infeed = {.step_time = Ms(10)},
                 .max_steps = 10,
                 .on_step = [&](const StepRecord& record, absl::Duration) {
                   records.push_back(record);
                   if (record.step == 4) world.now += std::exchange(hiccup, Ms(0));
                 }});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->books.utilisation().overhead, Ms(40));  // 10 of the 50 pass during the step.
  EXPECT_EQ(records[5].overhead, Ms(40));
  EXPECT_EQ(records[5].start, Ms(90));
  EXPECT_EQ(result->overhead.max_late, Ms(40));
  EXPECT_EQ(result->books.utilisation().au, 1.0);
  EXPECT_THAT(*result->wall_au, DoubleNear(90.0 / 130, 1e-12));
}

TEST(PacedRunTest, TheWaitForTheFirstStepIsLeftOutOfTheUtilisation) {
  World world;
  world.late[0] = absl::Seconds(2);
  const absl::StatusOr<PacedResult> result =
      world.Run({.infeed = {.step_time = Ms(10)}, .max_steps = 5});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->books.first_wait(), absl::Seconds(2));
  EXPECT_EQ(result->books.utilisation().au, 1.0);
}

TEST(PacedRunTest, EndsAfterTheDurationOrWithTheFeed) {
  World world;
  world.late[0] = absl::Seconds(2);  // Only step 0 waits, and this wait does not count.
  std::vector<absl::Duration> elapsed;
  absl::StatusOr<PacedResult> result =
      world.Run({.infeed = {.step_time = Ms(10)},
                 .max_duration = Ms(25),
                 .on_step = [&](const auto&, absl::Duration time) { elapsed.push_back(time); }});
  ASSERT_THAT(result, IsOk());
  EXPECT_THAT(elapsed, ElementsAre(Ms(10), Ms(20), Ms(30)));
  World finite;
  finite.steps = 7;
  result = finite.Run({.infeed = {.step_time = Ms(10)}});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->books.steps(), 7);
  World empty;
  empty.steps = 0;
  result = empty.Run({.infeed = {.step_time = Ms(10)}});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->books.steps(), 0);
  EXPECT_FALSE(result->wall_au.has_value());
}

// There are four steps of 10, of which the first does not count. The wait for the next step is
// cancelled after 20. So AU = 30 / 50.
TEST(PacedRunTest, ACancelledFeedEndsTheRunAndItsOpenWaitCounts) {
  World world;
  world.cancelled_at = 4;
  world.cancelled_after = Ms(20);
  const absl::StatusOr<PacedResult> result = world.Run({.infeed = {.step_time = Ms(10)}});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->books.steps(), 4);
  EXPECT_EQ(result->books.utilisation().open_wait, Ms(20));
  EXPECT_EQ(result->books.utilisation().au, 0.6);
  EXPECT_EQ(result->wall_au, 0.6);
  EXPECT_EQ(result->books.waits().max(), Ms(20));
  World never;
  never.cancelled_at = 0;
  const absl::StatusOr<PacedResult> none = never.Run({.infeed = {.step_time = Ms(10)}});
  ASSERT_THAT(none, IsOk());
  EXPECT_FALSE(none->books.utilisation().au.has_value());
}

TEST(PacedRunTest, FeedErrorsArePassedOnAndCoresThatDisagreeAreAnError) {
  const PacedOptions options = {.infeed = {.step_time = Ms(10)}};
  World failing(2);
  failing.fails_at = 3;
  EXPECT_THAT(failing.Run(options).status(), StatusIs(absl::StatusCode::kUnavailable, "no server"));
  World uneven(2);
  uneven.ends_early_at = 1;
  EXPECT_THAT(uneven.Run(options).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("core 1's feed has ended, but core 0's feed has step 1")));
  World skipping(2);
  skipping.skips_at = 1;
  EXPECT_THAT(skipping.Run(options).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("core 1 is given step 2, but core 0 step 1")));
  EXPECT_THAT(World().Run({.infeed = {.step_time = Ms(10)}, .max_steps = 0}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_steps is 0")));
  EXPECT_THAT(World().Run({}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("step_time is 0")));
}

}  // namespace
}  // namespace systole::emulator
