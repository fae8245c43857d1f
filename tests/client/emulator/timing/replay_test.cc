#include "client/emulator/timing/replay.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

absl::Duration Ms(int ms) { return absl::Milliseconds(ms); }

TEST(ReplayTest, RecordingNotesArrivalsSinceItBegan) {
  absl::Duration now = absl::Seconds(100);
  int64_t popped = 0;
  // Step 40 arrived before the recording began. Core 1 is always 2 ms later than core 0.
  const PopArrival feed = [&](int core) -> absl::StatusOr<std::optional<SliceArrival>> {
    const int64_t step = 40 + popped++ / 2;
    if (step == 43) return std::nullopt;
    return SliceArrival{.step = step,
                        .arrived_at = absl::Seconds(100) + Ms(10) * (step - 40) -
                                      (step == 40 ? Ms(7) : Ms(0)) + core * Ms(2)};
  };
  Arrivals arrivals = {.tensors = {{.name = "valid", .shape = {4}}}, .num_cores = 2};
  const PopArrival recording = Recording(
      feed, [&now] { return now; }, arrivals);
  now = absl::Seconds(200);  // Only the clock's reading at the beginning counts.
  for (int step = 0; step < 3; ++step) {
    const absl::StatusOr<std::optional<StepArrival>> popped_step = PopStep(recording, 2);
    ASSERT_THAT(popped_step, IsOk());
    EXPECT_EQ((*popped_step)->step, 40 + step);
  }
  const absl::StatusOr<std::optional<StepArrival>> end = PopStep(recording, 2);
  ASSERT_THAT(end, IsOk());
  EXPECT_FALSE(end->has_value());
  EXPECT_EQ(arrivals.first_step, 40);
  EXPECT_THAT(arrivals.ns, ElementsAre(0, 0, 10'000'000, 12'000'000, 20'000'000, 22'000'000));
  EXPECT_THAT(CheckArrivals(arrivals), IsOk());
}

TEST(ReplayTest, AStepCancelledHalfwayIsNotRecorded) {
  int64_t popped = 0;
  const PopArrival feed = [&](int) -> absl::StatusOr<std::optional<SliceArrival>> {
    if (popped++ == 5) return absl::CancelledError("enough");
    return SliceArrival{.step = (popped - 1) / 2};
  };
  Arrivals arrivals = {.tensors = {{.name = "valid", .shape = {4}}}, .num_cores = 2};
  const PopArrival recording = Recording(
      feed, [] { return absl::ZeroDuration(); }, arrivals);
  EXPECT_THAT(PopStep(recording, 2), IsOk());
  EXPECT_THAT(PopStep(recording, 2), IsOk());
  EXPECT_THAT(PopStep(recording, 2), StatusIs(absl::StatusCode::kCancelled, testing::_));
  EXPECT_EQ(arrivals.ns.size(), 4u);
  EXPECT_THAT(CheckArrivals(arrivals), IsOk());
}

TEST(ReplayTest, ARecordingFailsBeforeItExceedsTheFileLimit) {
  Arrivals arrivals = {.tensors = {{.name = "valid", .shape = {4}}}, .num_cores = 2};
  arrivals.ns.resize(static_cast<size_t>(kMaxArrivalTimes - 2));
  const PopArrival recording =
      Recording([](int) { return SliceArrival{}; }, [] { return absl::ZeroDuration(); }, arrivals);
  EXPECT_THAT(PopStep(recording, 2), IsOk());
  EXPECT_THAT(PopStep(recording, 2),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("give fewer --steps")));
  EXPECT_THAT(CheckArrivals(arrivals), IsOk());
}

// Steps come every 15 ms. A chip with steps of 10 ms waits 5 of each 15. A chip with steps of 20 ms
// never waits, because the recording runs ahead of it.
TEST(ReplayTest, OneRecordingServesEveryChip) {
  Arrivals arrivals = {.tensors = {{.name = "valid", .shape = {4}}}, .num_cores = 2};
  for (int step = 0; step < 10; ++step) {
    for (int core = 0; core < 2; ++core) arrivals.ns.push_back(15'000'000 * (step + 1));
  }
  const absl::StatusOr<TimingBooks> fast = Replay(arrivals, {.step_time = Ms(10)});
  ASSERT_THAT(fast, IsOk());
  EXPECT_THAT(*fast->utilisation().au, DoubleNear(2.0 / 3, 1e-12));
  EXPECT_EQ(fast->utilisation().cores.size(), 2u);
  EXPECT_EQ(fast->first_wait(), Ms(15));
  std::vector<int64_t> steps;
  const absl::StatusOr<TimingBooks> slow =
      Replay(arrivals, {.step_time = Ms(20)},
             [&steps](const StepRecord& record) { steps.push_back(record.step); });
  ASSERT_THAT(slow, IsOk());
  EXPECT_THAT(steps, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(slow->utilisation().au, 1.0);
}

TEST(ReplayTest, AnEmptyRecordingHasNoAu) {
  const absl::StatusOr<TimingBooks> books =
      Replay({.tensors = {{.name = "valid", .shape = {4}}}, .num_cores = 2}, {.step_time = Ms(10)});
  ASSERT_THAT(books, IsOk());
  EXPECT_EQ(books->steps(), 0);
  EXPECT_FALSE(books->utilisation().au.has_value());
}

TEST(ReplayTest, OptionsOutOfRangeAreRefused) {
  EXPECT_THAT(Replay({.tensors = {{.name = "valid", .shape = {4}}}, .num_cores = 2}, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("step_time is 0")));
}

}  // namespace
}  // namespace systole::emulator
