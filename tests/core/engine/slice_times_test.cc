#include "core/engine/slice_times.h"

#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/engine/stage_totals.h"
#include "core/engine/step_scheduler.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

absl::Duration Ms(int64_t milliseconds) { return absl::Milliseconds(milliseconds); }

StageTimes Stages(int64_t read, int64_t make, int64_t wait) {
  return {.read = Ms(read), .make = Ms(make), .wait = Ms(wait)};
}

TEST(SliceTimesTest, TimeWithOnlyReadsCountsAsReadAndTheRestAsMake) {
  SliceTimes times(Ms(100));
  times.SetReads(true, Ms(100));
  times.SetReads(false, Ms(130));  // A thread begins.
  times.SetReads(true, Ms(140));   // The next records are not there yet.
  times.SetReads(true, Ms(145));
  times.SetReads(false, Ms(150));
  times.Done(Ms(170));
  EXPECT_EQ(times.For(/*wanted=*/Ms(100), /*reads_ahead=*/true, Ms(175)), Stages(40, 30, 5));
}

TEST(SliceTimesTest, TheShareOfWorkInWhichThreadsSleepCountsAsRead) {
  SliceTimes times(Ms(100));
  times.AddWork(Ms(60), Ms(30));
  times.AddWork(Ms(60), Ms(60));  // Two threads at a time.
  times.Done(Ms(180));
  EXPECT_EQ(times.For(Ms(100), /*reads_ahead=*/false, Ms(180)), Stages(60, 20, 0));
}

TEST(SliceTimesTest, TimeBeforeASliceWasWantedDoesNotCount) {
  SliceTimes times(Ms(100));
  times.SetReads(true, Ms(100));
  times.SetReads(false, Ms(130));
  times.Done(Ms(170));
  EXPECT_EQ(times.For(/*wanted=*/Ms(110), true, Ms(170)), Stages(20, 40, 0));
  EXPECT_EQ(times.For(/*wanted=*/Ms(150), true, Ms(180)), Stages(0, 20, 10));
  EXPECT_EQ(times.For(/*wanted=*/Ms(400), true, Ms(410)), Stages(0, 0, 10));
}

TEST(SliceTimesTest, TimeBeforeASliceBeginsCountsAsReadIfItReadsAheadElseAsMake) {
  SliceTimes times(Ms(100));
  times.Done(Ms(110));
  EXPECT_EQ(times.For(/*wanted=*/Ms(60), /*reads_ahead=*/true, Ms(110)), Stages(40, 10, 0));
  EXPECT_EQ(times.For(/*wanted=*/Ms(60), /*reads_ahead=*/false, Ms(110)), Stages(0, 50, 0));
}

TEST(SliceTimesTest, StageTimesAreBetweenZeroAndOneHour) {
  SliceTimes times(Ms(0));
  times.Done(absl::Hours(30));
  EXPECT_EQ(times.For(Ms(0), false, absl::Hours(50)),
            (StageTimes{.make = absl::Hours(1), .wait = absl::Hours(1)}));
  EXPECT_EQ(times.For(Ms(0), false, absl::Hours(20)).wait, absl::ZeroDuration());
}

// A scheduler with a clock that the test sets. Streams of one core share a plan.
class ScheduledTimesTest : public testing::Test {
 protected:
  using Stream = std::shared_ptr<ScheduledStream>;

  Stream Add(int64_t steps = 100, int cores = 1, const StreamMemory& memory = {}) {
    auto stream = std::make_shared<ScheduledStream>(cores == 1 ? plan_ : MakePlan(cores),
                                                    StepRange{.count = steps, .core_end = cores},
                                                    memory, steps * cores);
    EXPECT_THAT(scheduler_.Add(stream), IsOk());
    return stream;
  }
  // Makes the next task from `begin` to `end`.
  void Make(int64_t begin, int64_t end) {
    scheduler_.SetTime(Ms(begin));
    StepScheduler::Work work = scheduler_.Take();
    ASSERT_TRUE(work.task.has_value());
    scheduler_.SetTime(Ms(end));
    StepScheduler::TellAll(scheduler_.Finish(*work.task, work.task->run(), 1));
  }
  // The stages of the stream's next slice, which it gets at `now`. The consumer keeps the slice.
  StageTimes Deliver(const Stream& stream, int64_t now) {
    scheduler_.SetTime(Ms(now));
    const std::optional<Delivery> delivery = scheduler_.Next(*stream);
    EXPECT_TRUE(delivery.has_value() && delivery->ok() && (*delivery)->has_value());
    return stream->stages();
  }

  static std::shared_ptr<const FeedPlan> MakePlan(int cores) {
    return *FeedPlan::Create(
        SpecFromText(absl::StrCat("dataset: 'test' tail: PAD global_batch: 4 num_cores: ", cores,
                                  " outputs { name: 'id' feature: 'record_id' dtype: INT32 }")),
        OpenTestDataset(TestShards({20})));
  }

  const std::shared_ptr<const FeedPlan> plan_ = MakePlan(1);
  StepScheduler scheduler_ = StepScheduler({.threads = 1, .share_slices = true});
};

TEST_F(ScheduledTimesTest, ASliceMadeAheadWaitsFromItsEndToItsDelivery) {
  const Stream stream = Add();
  Make(100, 130);
  EXPECT_EQ(Deliver(stream, 150), Stages(0, 30, 20));
  EXPECT_EQ(stream->step_wait(), Ms(0));
}

TEST_F(ScheduledTimesTest, AConsumerThatWaitsCountsTheTimeBeforeItsSliceIsBegun) {
  const Stream stream = Add();
  scheduler_.SetTime(Ms(80));
  EXPECT_FALSE(scheduler_.Next(*stream).has_value());
  bool told = false;
  scheduler_.Wait(*stream, [&](const Delivery&) { told = true; });
  Make(100, 130);
  EXPECT_TRUE(told);
  EXPECT_EQ(stream->stages(), Stages(0, 50, 0));
  EXPECT_EQ(stream->step_wait(), Ms(50));
}

TEST_F(ScheduledTimesTest, TheWaitForAStepIsTheSumOverItsCores) {
  const Stream stream = Add(/*steps=*/10, /*cores=*/2);
  for (const int64_t begin : {100, 200}) {
    scheduler_.SetTime(Ms(begin));
    scheduler_.Wait(*stream, [](const Delivery&) {});
    Make(begin, begin + 30);
    EXPECT_EQ(stream->step_wait(), std::nullopt);  // The slice of core 1 is still to come.
    scheduler_.SetTime(Ms(begin + 40));
    scheduler_.Wait(*stream, [](const Delivery&) {});
    Make(begin + 50, begin + 60);
    EXPECT_EQ(stream->step_wait(), Ms(30 + 20));
  }
}

// A consumer that holds as many slices as it may hold gets the next slice only when it gives a
// slice back. The time until then does not count as a wait for a step.
TEST_F(ScheduledTimesTest, TimeWithAFullWindowDoesNotCountAsWaitForAStep) {
  const Stream stream = Add(/*steps=*/10, /*cores=*/1, {.window_bytes = 1});
  for (int i = 0; i < 3; ++i) Make(100, 110);
  std::vector<std::shared_ptr<SharedSlice>> held;
  for (int i = 0; i < 2; ++i) held.push_back(***scheduler_.Next(*stream));
  scheduler_.SetTime(Ms(200));
  EXPECT_FALSE(scheduler_.Next(*stream).has_value());
  scheduler_.Wait(*stream, [](const Delivery&) {});
  scheduler_.SetTime(Ms(300));
  EXPECT_NE(scheduler_.GiveBack(*stream, held[0]).waiter, nullptr);
  EXPECT_EQ(stream->step_wait(), Ms(0));
  EXPECT_EQ(stream->stages(), Stages(0, 10, 190));
}

TEST(StageTotalsTest, StageTimesAreSummedAndStepWaitsGoIntoAHistogram) {
  StageTotals totals;
  totals.Add(Stages(1, 20, 300));
  totals.Add(Stages(4, 50, 600));
  EXPECT_EQ(totals.stages(), Stages(5, 70, 900));
  totals.AddStep(Ms(0));
  totals.AddStep(Ms(0));
  totals.AddStep(Ms(20));
  totals.AddStep(absl::Hours(1));
  const HistogramReading waits = totals.step_waits();
  EXPECT_EQ(waits.count(), 4);
  EXPECT_DOUBLE_EQ(waits.sum, 3600.02);
  EXPECT_EQ(waits.bounds.front(), 0);
  EXPECT_EQ(waits.counts.front(), 2);  // No wait at all.
  EXPECT_EQ(waits.counts.back(), 1);   // Longer than every bound.
}

TEST_F(ScheduledTimesTest, ASharedSliceCountsFromTheTimeThatAStreamJoinsIt) {
  const Stream first = Add();
  Make(100, 130);
  const Stream second = Add();
  // The second stream joins a slice that is done.
  EXPECT_EQ(Deliver(second, 160), Stages(0, 0, 0));
  EXPECT_EQ(Deliver(first, 160), Stages(0, 30, 30));
}

TEST_F(ScheduledTimesTest, OnlyReadsIsTrueOnlyDuringReadsWithNothingToMake) {
  absl::StatusOr<AlignedBuffer> buffer = AlignedBuffer::Create(64);
  ASSERT_THAT(buffer, IsOk());
  PendingSlice slice(0, 0, /*examples=*/8, /*records=*/8, /*reads_ahead=*/true, *std::move(buffer));
  EXPECT_FALSE(slice.only_reads());
  ExampleRun first = slice.TakeToRead({.records = 4});
  ExampleRun second = slice.TakeToRead({.records = 4});
  EXPECT_TRUE(slice.only_reads());
  slice.ReturnRead(std::move(first));
  EXPECT_FALSE(slice.only_reads());  // A thread could make these examples now.
  const ExampleRun made = slice.Take({});
  EXPECT_FALSE(slice.only_reads());
  slice.Finish(made);
  EXPECT_TRUE(slice.only_reads());
  slice.ReturnRead(std::move(second));
  slice.Finish(slice.Take({}));
  EXPECT_TRUE(slice.is_done());
  EXPECT_FALSE(slice.only_reads());
}

}  // namespace
}  // namespace systole
