// Each test lets slices arrive at given times. The comments work out by hand when the steps start
// and how long the cores wait. Times are in ms. utilisation.h defines AU and the infeed fraction
// ("infeed").
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

// What a simulated run records.
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

// Two chips of one core each. Steps take 10, transfers take 4, and all slices are there at 0. The
// first step waits 4 for its transfer, but this wait does not count. No later step waits, because
// the transfers are done during the steps.
//   start 4, 14, 24, 34; AU = 30 / 30.
TEST(InfeedClockTest, SlicesInTimeCauseNoStallAfterTheFirstStep) {
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

// A slice comes every 15, and a step takes 10. With the wait of 5 before it, each step lasts 15.
//   AU = 30 / 45 = 2/3, infeed 5/15 = 1/3 in every step.
TEST(InfeedClockTest, ASliceThatIsAlwaysLateStallsEveryStep) {
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

// Steps take 10. Core 1's slices come every 12. The slices of cores 0 and 2 are there from the
// start. In each step core 1 stalls for 2, while cores 0 and 2 wait 2 at the barrier.
//   AU = 30 / 36 = 5/6, infeed 2/12 = 1/6 (the largest stall of a core counts, not the mean)
TEST(InfeedClockTest, ALateCoreStallsAndTheOtherCoresWaitAtTheBarrier) {
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

// Both cores are late in steps 1 and 2, one core by 3 and the other by 7, in turn. A core's stall
// is the wait for its own slice. A step starts when the latest core is ready.
//   step 0: starts at 0, ends at 10
//   step 1: core 0 is ready at 13, core 1 at 17; starts at 17, ends at 27
//   step 2: core 0 is ready at 34, core 1 at 30; starts at 34, ends at 44
//   AU = 20 / (17 + 17), infeed 7/17 in steps 1 and 2; core 0: stall 3 + 7, barrier 4 + 0
TEST(InfeedClockTest, EachLateCoreStallsForItsOwnSliceOnly) {
  const Books books = Simulate({.num_cores = 2, .step_time = Ms(10)}, {{0, 0}, {13, 17}, {34, 30}});
  EXPECT_THAT(books.starts_ms, ElementsAre(0, 17, 34));
  EXPECT_THAT(books.stalls_ms[1], ElementsAre(3, 7));
  EXPECT_THAT(books.stalls_ms[2], ElementsAre(7, 3));
  EXPECT_THAT(*books.utilisation.au, DoubleNear(20.0 / 34, kTiny));
  EXPECT_EQ(books.utilisation.cores[0].infeed_stall, Ms(10));
  EXPECT_EQ(books.utilisation.cores[0].barrier, Ms(4));
}

// Steps take 10, and three slices come at once every 45. So steps 3 and 6 wait for 15, and last 25.
//   start 0, 10, 20, 45, 55, 65, 90; AU = 60 / (100 - 10) = 2/3
//   infeed of steps 1 to 6: 0, 0, 15/25, 0, 0, 15/25; mean 0.2
TEST(InfeedClockTest, BurstsOfSlicesStallOnlyTheirFirstStep) {
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

// Two cores share one link. Their transfers take 6 each, one after the other. A step takes 10. The
// second transfer is core 1's, so core 1 is ready 2 after the end of the step before. Core 0 is
// ready earlier, and waits for core 1 at the barrier.
//   step 0: core 0 is ready at 6, core 1 at 12; starts at 12, ends at 22
//   step 1: core 0 is ready at 18, core 1 at 24; starts at 24, ends at 34
//   AU = 20 / 24
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
    // If each core has its own chip and link, the transfers of 6 are done during the steps of 10.
    InfeedOptions apart = options;
    apart.cores_per_chip = 1;
    EXPECT_EQ(Simulate(apart, {{0, 0}, {0, 0}, {0, 0}}).utilisation.au, 1.0);
  }
}

// Within a step the slice that arrived first is transferred first. Core 1's slice arrives at 0 and
// is ready at 6. Core 0's slice arrives at 3, waits for the link until 6, and is ready at 12. The
// last chip has only core 2, whose slice is ready at 6.
TEST(InfeedClockTest, TheLinkTransfersSlicesInOrderOfArrival) {
  const Books books =
      Simulate({.num_cores = 3, .cores_per_chip = 2, .step_time = Ms(10), .transfer_time = Ms(6)},
               {{3, 0, 0}});
  EXPECT_THAT(books.stalls_ms[0], ElementsAre(12, 6, 6));
  EXPECT_THAT(books.starts_ms, ElementsAre(12));
}

// Compares queues of depth 1 and 2. Each chip has one core. Transfers take 12, and steps take 10.
// Core 0's slice of step 1 comes at 100, and all other slices come at 0.
//   step 0: starts at 12, ends at 22
//   step 1: core 0 is ready at 112, core 1 at 24 (stall 2, barrier 88); starts at 112, ends at 122
//   step 2: core 0 is ready at 124. For core 1 the depth decides:
//     depth 1: core 1's queue has room for the slice when step 1 starts, at 112. So core 1 is ready
//              at 124, and stalls for 2.
//     depth 2: core 1's queue has room for the slice when step 0 starts, at 12. So core 1 is ready
//              at 36, and waits 2 at the barrier.
TEST(InfeedClockTest, ADeeperQueueFillsWhileAnotherCoreWaits) {
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

// A queue holds one step. Transfers take 15, and steps take 10. Core 1's first slice comes at 100,
// so step 0 starts at 115 and ends at 125. Core 0's second slice comes at 0, but core 0's queue has
// no room for the slice before 115. So this slice is ready at 130, and core 0 stalls for 5. The
// second slice of core 1 is ready at 130, too.
TEST(InfeedClockTest, ATransferWaitsUntilItsQueueHasRoom) {
  const Books books =
      Simulate({.num_cores = 2, .queue_depth = 1, .step_time = Ms(10), .transfer_time = Ms(15)},
               {{0, 100}, {0, 100}});
  EXPECT_THAT(books.starts_ms, ElementsAre(115, 130));
  EXPECT_THAT(books.stalls_ms[1], ElementsAre(5, 5));
  EXPECT_THAT(books.barriers_ms[1], ElementsAre(0, 0));
}

// Step 0 ends at 10. Then the clock is moved on by 4, so step 1 starts at 14. The slice of step 1
// comes at 12, which is in time.
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
