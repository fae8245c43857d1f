// Arrival patterns and the books that they give, worked out by hand in the comments. Times are in
// ms.
#include "client/emulator/timing/infeed_clock.h"

#include <vector>

#include "client/emulator/timing/utilisation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kTiny = 1e-12;

absl::Duration Ms(int ms) { return absl::Milliseconds(ms); }

// The books of a simulated run.
struct Books {
  std::vector<int> starts_ms;
  std::vector<std::vector<int>> stalls_ms;  // [step][core]
  std::vector<std::vector<int>> barriers_ms;
  Utilisation utilisation;
};

// Simulates a run in which slices arrive at `arrived_ms[step][core]`.
Books Simulate(InfeedOptions options, const std::vector<std::vector<int>>& arrived_ms) {
  absl::StatusOr<InfeedClock> clock = InfeedClock::Create(options);
  EXPECT_THAT(clock, IsOk());
  Books books;
  UtilisationMeter meter;
  for (const std::vector<int>& step : arrived_ms) {
    std::vector<absl::Duration> arrived;
    for (const int ms : step) arrived.push_back(Ms(ms));
    const StepRecord record = clock->Step(arrived);
    books.starts_ms.push_back(static_cast<int>(absl::ToInt64Milliseconds(record.start)));
    std::vector<int>& stalls = books.stalls_ms.emplace_back();
    std::vector<int>& barriers = books.barriers_ms.emplace_back();
    for (int core = 0; core < options.num_cores; ++core) {
      stalls.push_back(static_cast<int>(absl::ToInt64Milliseconds(record.infeed_stall[core])));
      barriers.push_back(static_cast<int>(absl::ToInt64Milliseconds(record.barrier(core))));
    }
    EXPECT_EQ(record.end(), clock->end());
    EXPECT_EQ(record.wait, record.max_infeed_stall());
    meter.Add(record);
  }
  books.utilisation = meter.result();
  return books;
}

// Two chips of one core, steps of 10, transfers of 4 that hide behind the steps. All slices are
// there at 0. The first step waits 4 for its transfer, but this wait does not count. After that no
// step waits.
//   start 4, 14, 24, 34; AU = 30 / 30.
TEST(InfeedClockTest, NeverLate) {
  for (const int depth : {1, 2}) {
    const Books books = Simulate(
        {.num_cores = 2, .queue_depth = depth, .step_time = Ms(10), .transfer_time = Ms(4)},
        {{0, 0}, {0, 0}, {0, 0}, {0, 0}});
    EXPECT_THAT(books.starts_ms, ElementsAre(4, 14, 24, 34));
    EXPECT_THAT(books.stalls_ms[0], ElementsAre(4, 4));
    EXPECT_EQ(books.utilisation.steps, 3);
    EXPECT_EQ(books.utilisation.total, Ms(30));
    EXPECT_EQ(books.utilisation.au, 1.0);
    EXPECT_EQ(books.utilisation.infeed->max, 0.0);
    for (const CoreBooks& core : books.utilisation.cores) {
      EXPECT_EQ(core.infeed_stall, Ms(0));
      EXPECT_EQ(core.barrier, Ms(0));
    }
  }
}

// A slice comes every 15, and a step takes 10, so each step waits 5 of its 15.
//   AU = 30 / 45 = 2/3, infeed 5/15 = 1/3 in every step.
TEST(InfeedClockTest, AlwaysLate) {
  for (const int depth : {1, 2}) {
    const Books books =
        Simulate({.queue_depth = depth, .step_time = Ms(10)}, {{15}, {30}, {45}, {60}});
    EXPECT_THAT(books.starts_ms, ElementsAre(15, 30, 45, 60));
    EXPECT_THAT(books.stalls_ms[3], ElementsAre(5));
    EXPECT_THAT(*books.utilisation.au, DoubleNear(2.0 / 3, kTiny));
    EXPECT_THAT(books.utilisation.infeed->average, DoubleNear(1.0 / 3, kTiny));
    EXPECT_THAT(books.utilisation.infeed->min, DoubleNear(1.0 / 3, kTiny));
    EXPECT_EQ(books.utilisation.cores[0].infeed_stall, Ms(15));
    EXPECT_EQ(books.utilisation.cores[0].barrier, Ms(0));
  }
}

// Three cores. Core 1's slices come every 12, the slices of the others are there from the start. In
// each step core 1 stalls for 2, and the others wait 2 at the barrier.
//   AU = 30 / 36 = 5/6, infeed 2/12 = 1/6: the largest over the cores, not their mean.
TEST(InfeedClockTest, OneLateCore) {
  const Books books = Simulate({.num_cores = 3, .step_time = Ms(10)},
                               {{0, 12, 0}, {0, 24, 0}, {0, 36, 0}, {0, 48, 0}});
  EXPECT_THAT(books.starts_ms, ElementsAre(12, 24, 36, 48));
  EXPECT_THAT(books.stalls_ms[2], ElementsAre(0, 2, 0));
  EXPECT_THAT(books.barriers_ms[2], ElementsAre(2, 0, 2));
  EXPECT_THAT(*books.utilisation.au, DoubleNear(5.0 / 6, kTiny));
  EXPECT_THAT(books.utilisation.infeed->average, DoubleNear(1.0 / 6, kTiny));
  EXPECT_EQ(books.utilisation.cores[0].infeed_stall, Ms(0));
  EXPECT_EQ(books.utilisation.cores[0].barrier, Ms(6));
  EXPECT_EQ(books.utilisation.cores[1].infeed_stall, Ms(6));
  EXPECT_EQ(books.utilisation.cores[1].barrier, Ms(0));
}

// Both cores are late in each step, one by 3 and the other by 7, in turn. Each core pays for its
// own slice, and a step waits as long as its latest core. The first step ends at 10. Core 0 is
// ready at 13, core 1 at 17: step 1 starts at 17 and ends at 27. Core 0 is ready at 34, core 1 at
// 30: step 2 starts at 34.
//   AU = 20 / (17 + 17), infeed 7/17 in both steps; core 0: stall 3 + 7, barrier 4 + 0.
TEST(InfeedClockTest, BothLateEachPaysItsOwn) {
  const Books books = Simulate({.num_cores = 2, .step_time = Ms(10)}, {{0, 0}, {13, 17}, {34, 30}});
  EXPECT_THAT(books.starts_ms, ElementsAre(0, 17, 34));
  EXPECT_THAT(books.stalls_ms[1], ElementsAre(3, 7));
  EXPECT_THAT(books.stalls_ms[2], ElementsAre(7, 3));
  EXPECT_THAT(*books.utilisation.au, DoubleNear(20.0 / 34, kTiny));
  EXPECT_EQ(books.utilisation.cores[0].infeed_stall, Ms(10));
  EXPECT_EQ(books.utilisation.cores[0].barrier, Ms(4));
}

// Three slices come at once every 45, for steps of 10. The steps start at 0 10 20, then 45 55 65,
// then 90.
//   AU = 60 / (100 - 10) = 2/3; two of six steps wait 15 of 25: infeed 0, 0, .6, 0, 0, .6; mean .2.
TEST(InfeedClockTest, Bursts) {
  for (const int depth : {1, 2, 3}) {
    const Books books = Simulate({.queue_depth = depth, .step_time = Ms(10)},
                                 {{0}, {0}, {0}, {45}, {45}, {45}, {90}});
    EXPECT_THAT(books.starts_ms, ElementsAre(0, 10, 20, 45, 55, 65, 90));
    EXPECT_THAT(*books.utilisation.au, DoubleNear(2.0 / 3, kTiny));
    EXPECT_THAT(books.utilisation.infeed->average, DoubleNear(0.2, kTiny));
    EXPECT_EQ(books.utilisation.infeed->min, 0.0);
    EXPECT_THAT(books.utilisation.infeed->max, DoubleNear(0.6, kTiny));
  }
}

// Two cores share one link. Their transfers of 6 follow each other, so both take 12, and steps take
// 10. Core 1's transfer is the second, so core 1 is ready 2 after the step before has ended. Core 0
// waits for core 1.
//   ready 6 12 | start 12 end 22 | 18 24 | start 24 ..   AU = 20 / 24.
TEST(InfeedClockTest, CoresOfAChipShareItsLink) {
  for (const int depth : {1, 2}) {
    const InfeedOptions options = {.num_cores = 2,
                                   .cores_per_chip = 2,
                                   .queue_depth = depth,
                                   .step_time = Ms(10),
                                   .transfer_time = Ms(6)};
    const Books books = Simulate(options, {{0, 0}, {0, 0}, {0, 0}});
    EXPECT_THAT(books.starts_ms, ElementsAre(12, 24, 36));
    EXPECT_THAT(books.stalls_ms[1], ElementsAre(0, 2));
    EXPECT_THAT(books.barriers_ms[1], ElementsAre(2, 0));
    EXPECT_THAT(*books.utilisation.au, DoubleNear(20.0 / 24, kTiny));
    // If each core has a chip of its own, the steps hide the transfers.
    InfeedOptions apart = options;
    apart.cores_per_chip = 1;
    EXPECT_EQ(Simulate(apart, {{0, 0}, {0, 0}, {0, 0}}).utilisation.au, 1.0);
  }
}

// Within a step the slice that arrived first is transferred first. Core 1's slice arrives at 0 and
// is ready at 6. Core 0's slice arrives at 3, waits for the link until 6, and is ready at 12. The
// last chip may have one core only: core 2 is alone on its chip.
TEST(InfeedClockTest, TheLinkTakesWhatCameFirst) {
  const Books books =
      Simulate({.num_cores = 3, .cores_per_chip = 2, .step_time = Ms(10), .transfer_time = Ms(6)},
               {{3, 0, 0}});
  EXPECT_THAT(books.stalls_ms[0], ElementsAre(12, 6, 6));
  EXPECT_THAT(books.starts_ms, ElementsAre(12));
}

// Compares queues of depth 1 and 2. Chips have one core, transfers take 12, steps 10. Core 0's
// slice of step 1 comes at 100, all others at 0. Step 1 starts at 112 and ends at 122. Core 1's
// slice of step 1 was ready at 24 (stall 2, barrier 88). Core 0's slice of step 2 is ready at 124.
//   depth 1: the queue has room for core 1's step 2 when step 1 is taken, at 112. This slice is
//            ready at 124, which is a stall of 2.
//   depth 2: the queue has room for core 1's step 2 when step 0 starts, at 12. This slice is ready
//            at 36, so core 1 waits 2 at the barrier.
TEST(InfeedClockTest, ADeeperQueueFillsDuringAnothersWait) {
  InfeedOptions options = {
      .num_cores = 2, .queue_depth = 1, .step_time = Ms(10), .transfer_time = Ms(12)};
  const std::vector<std::vector<int>> arrived = {{0, 0}, {100, 0}, {0, 0}};
  const Books shallow = Simulate(options, arrived);
  EXPECT_THAT(shallow.starts_ms, ElementsAre(12, 112, 124));
  EXPECT_THAT(shallow.stalls_ms[1], ElementsAre(90, 2));
  EXPECT_THAT(shallow.barriers_ms[1], ElementsAre(0, 88));
  EXPECT_THAT(shallow.stalls_ms[2], ElementsAre(2, 2));
  options.queue_depth = 2;
  const Books deep = Simulate(options, arrived);
  EXPECT_THAT(deep.starts_ms, ElementsAre(12, 112, 124));
  EXPECT_THAT(deep.stalls_ms[2], ElementsAre(2, 0));
  EXPECT_THAT(deep.barriers_ms[2], ElementsAre(0, 2));
}

// The queue holds one step. Transfers take 15, steps 10. Core 1's first slice comes at 100, so both
// cores start at 115. Core 0's second slice was there all the time, but the queue has no room for
// this slice before 115. So the slice is ready at 130, 5 after the end of the first step. Core 1's
// second slice is ready at 130, too.
TEST(InfeedClockTest, TheStepAfterAFullQueueWaitsForRoom) {
  const Books books =
      Simulate({.num_cores = 2, .queue_depth = 1, .step_time = Ms(10), .transfer_time = Ms(15)},
               {{0, 100}, {0, 100}});
  EXPECT_THAT(books.starts_ms, ElementsAre(115, 130));
  EXPECT_THAT(books.stalls_ms[1], ElementsAre(5, 5));
  EXPECT_THAT(books.barriers_ms[1], ElementsAre(0, 0));
}

// At 10 the clock is moved on by 4, so step 1 begins at 14. Its slice came at 12, which is in time.
TEST(InfeedClockTest, ASlipIsOverheadAndNotAStall) {
  absl::StatusOr<InfeedClock> clock = InfeedClock::Create({.step_time = Ms(10)});
  ASSERT_THAT(clock, IsOk());
  clock->Step({Ms(0)});
  clock->Slip(Ms(4));
  const StepRecord record = clock->Step({Ms(12)});
  EXPECT_EQ(record.overhead, Ms(4));
  EXPECT_EQ(record.wait, Ms(0));
  EXPECT_EQ(record.start, Ms(14));
  EXPECT_EQ(record.duration(), Ms(10));
  EXPECT_EQ(clock->Step({Ms(12)}).overhead, Ms(0));
}

TEST(InfeedClockTest, OptionsOutOfRangeAreRefused) {
  const InfeedOptions good = {.step_time = Ms(1)};
  const auto refusal = [](InfeedOptions options) { return InfeedClock::Create(options).status(); };
  EXPECT_THAT(refusal(good), IsOk());
  InfeedOptions bad = good;
  bad.num_cores = 0;
  EXPECT_THAT(refusal(bad), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("num_cores is 0, want 1 to 65536")));
  bad = good;
  bad.cores_per_chip = -1;
  EXPECT_THAT(refusal(bad), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is -1")));
  bad = good;
  bad.queue_depth = 65537;
  EXPECT_THAT(refusal(bad), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("65537")));
  bad = good;
  bad.step_time = Ms(0);
  EXPECT_THAT(refusal(bad), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("step_time is 0, want more than 0 to an hour")));
  bad = good;
  bad.transfer_time = absl::Minutes(61);
  EXPECT_THAT(refusal(bad), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1h1m")));
}

}  // namespace
}  // namespace systole::emulator
