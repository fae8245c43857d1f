#include "core/engine/step_scheduler.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;
using Stream = std::shared_ptr<ScheduledStream>;
using Task = SliceTask;

constexpr int64_t kManySteps = 1 << 20;

std::shared_ptr<const FeedPlan> MakePlan(
    int64_t global_batch,
    const std::shared_ptr<Dataset>& dataset = OpenTestDataset(TestShards({20})), int cores = 1) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText(absl::StrCat("dataset: 'test' num_cores: ", cores,
                                " tail: PAD global_batch: ", global_batch,
                                " outputs { name: 'id' feature: 'record_id' dtype: INT32 }")),
      dataset);
  EXPECT_THAT(plan, IsOk());
  return *plan;
}

int64_t CostOf(const FeedPlan& plan) { return plan.layout().slice_bytes() + kSliceOverheadBytes; }

Stream MustAdd(StepScheduler& scheduler, const std::shared_ptr<const FeedPlan>& plan,
               const StepRange& range = {.count = kManySteps}, const StreamMemory& memory = {},
               const std::string& peer = "") {
  auto stream = std::make_shared<ScheduledStream>(plan, range, memory, range.count, peer);
  EXPECT_THAT(scheduler.Add(stream), IsOk());
  return stream;
}

// Takes the next task whose records are to be read.
Task MustTakeToRead(StepScheduler& scheduler) {
  StepScheduler::Work work = scheduler.TakeToRead([](const FeedPlan&) { return true; });
  EXPECT_TRUE(work.task.has_value());
  return *std::move(work.task);
}

// Takes the next task.
Task MustTake(StepScheduler& scheduler) {
  StepScheduler::Work work = scheduler.Take();
  EXPECT_TRUE(work.task.has_value());
  return *std::move(work.task);
}

// Finishes the whole task, which has cost `cost`. `status` is the result of its first example.
StepScheduler::Answers Finish(StepScheduler& scheduler, const Task& task, double cost,
                              absl::Status status = absl::OkStatus()) {
  ExampleRun run = task.run();
  run.error.Add(run.examples.begin, std::move(status));
  return scheduler.Finish(task, run, cost);
}

// The slice that the consumer gets, or null if it has to wait.
std::shared_ptr<SharedSlice> Deliver(StepScheduler& scheduler, const Stream& stream) {
  std::optional<Delivery> delivery = scheduler.Next(*stream);
  if (!delivery.has_value()) return nullptr;
  EXPECT_TRUE(delivery->ok() && (*delivery)->has_value());
  return ***std::move(delivery);
}

TEST(StepSchedulerTest, NothingIsBegunBeforeAThreadAsks) {
  StepScheduler scheduler({.threads = 2});
  EXPECT_FALSE(scheduler.Take().task.has_value());
  const Stream stream = MustAdd(scheduler, MakePlan(4));
  EXPECT_EQ(scheduler.budget().used_bytes(), 0);
  const Task task = MustTake(scheduler);
  EXPECT_EQ(task.plan(), stream->plan());
  EXPECT_EQ(task.examples(), (ExampleRange{0, 4}));
  EXPECT_EQ(scheduler.budget().used_bytes(), CostOf(*stream->plan()));
}

TEST(StepSchedulerTest, AHugeSliceIsSplitIntoTasksOfAtMost4096Examples) {
  StepScheduler scheduler({.threads = 2});
  const Stream stream = MustAdd(scheduler, MakePlan(1 << 24));
  const Task records = MustTake(scheduler);
  EXPECT_EQ(records.examples().begin, 0);
  EXPECT_LE(records.examples().end, 20);  // The slice's other examples are padding.
  int64_t end = records.examples().end;
  for (int i = 0; i < 10; ++i) {
    const Task task = MustTake(scheduler);
    EXPECT_EQ(task.data(), records.data());
    EXPECT_EQ(task.examples().begin, end);
    EXPECT_LE(task.examples().size(), 4096);
    end = task.examples().end;
  }
  EXPECT_GE(end, 8 * 4096);  // The slice is not cut up into tiny tasks.
}

// A task mixes the groups that it makes, so no group may be split between two tasks.
TEST(StepSchedulerTest, TasksOfAMixedFeedNeverSplitAGroup) {
  for (const int group : {2, 3, 7, 100, 256}) {
    SCOPED_TRACE(group);
    const int64_t batch = group * int64_t{1000};
    const auto dataset = OpenTestDataset(TestShards({20}));
    absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
        SpecFromText(
            absl::StrCat("dataset: 'test' num_cores: 1 tail: PAD global_batch: ", batch,
                         " outputs { name: 'x' feature: 'path' shape: [1, 3, 1] dtype: FLOAT32 } "
                         "mix { group: ",
                         group, " images: 'x' mixup {} }")),
        dataset);
    ASSERT_THAT(plan, IsOk());
    StepScheduler scheduler({.threads = 2});
    const Stream stream = MustAdd(scheduler, *plan);
    int64_t end = 0;
    while (end < batch) {
      const Task task = MustTake(scheduler);
      EXPECT_EQ(task.examples().begin, end);
      EXPECT_EQ(task.examples().size() % group, 0);
      EXPECT_LT(task.examples().size(), 4096 + group);
      // The slice has 20 records, and padding after them. A task that has records ends with the
      // last group that has a record, or earlier.
      if (end < 20) {
        EXPECT_LE(task.examples().end, (20 + group - 1) / group * group);
      }
      end = task.examples().end;
    }
    EXPECT_EQ(end, batch);
  }
}

// A slice of the healthy stream is one task. A slice of the giant stream is thousands of tasks. All
// tasks cost the same, so the two streams take turns task by task.
TEST(StepSchedulerTest, AGiantSliceHoldsNobodyUp) {
  StepScheduler scheduler({.threads = 1});
  const Stream giant = MustAdd(scheduler, MakePlan(1 << 24));
  const Stream healthy = MustAdd(scheduler, MakePlan(4));
  constexpr double kTaskCost = 1000;
  int tasks = 0;
  for (int slices = 0; slices < 100;) {
    const Task task = MustTake(scheduler);
    ++tasks;
    Finish(scheduler, task, kTaskCost);
    const std::shared_ptr<SharedSlice> slice = Deliver(scheduler, healthy);
    if (slice == nullptr) continue;
    EXPECT_EQ(slice->step(), slices++);
    scheduler.GiveBack(*healthy, slice);
  }
  EXPECT_LE(tasks, 210);
  EXPECT_EQ(Deliver(scheduler, giant), nullptr);
}

TEST(StepSchedulerTest, StreamsGetTheSameTimeWhateverTheirTasksCost) {
  StepScheduler scheduler({.threads = 1});
  const Stream cheap = MustAdd(scheduler, MakePlan(4));
  const Stream dear = MustAdd(scheduler, MakePlan(4));
  double cheap_cost = 0;
  double dear_cost = 0;
  while (cheap_cost + dear_cost < 1e6) {
    const Task task = MustTake(scheduler);
    const bool is_dear = task.plan() == dear->plan();
    const double cost = is_dear ? 10'000 : 100;
    (is_dear ? dear_cost : cheap_cost) += cost;
    Finish(scheduler, task, cost);
    const std::shared_ptr<SharedSlice> slice = Deliver(scheduler, is_dear ? dear : cheap);
    ASSERT_NE(slice, nullptr);
    scheduler.GiveBack(is_dear ? *dear : *cheap, slice);
  }
  // The two sums may differ by the cost of a few tasks, and by the cost that the scheduler assumes
  // for the first task of a stream.
  EXPECT_NEAR(cheap_cost, dear_cost, 100'000);
}

TEST(StepSchedulerTest, AnUnfinishedTaskWaitsForItsStreamsNextTurn) {
  StepScheduler scheduler({.threads = 1});
  const Stream slow = MustAdd(scheduler, MakePlan(4), {.count = kManySteps}, {}, "slow");
  Task task = MustTake(scheduler);
  const Stream other = MustAdd(scheduler, MakePlan(4), {.count = kManySteps}, {}, "other");
  // Three of this task's examples cost as much as dozens of the other stream's slices.
  ExampleRun run = task.run();
  run.done = 3;
  scheduler.Return(task, run, 3'000);
  int of_other = 0;
  while ((task = MustTake(scheduler)).plan() != slow->plan()) {
    ++of_other;
    Finish(scheduler, task, 80);
    scheduler.GiveBack(*other, Deliver(scheduler, other));
  }
  EXPECT_NEAR(of_other, 3'000 / 80, 2);
  EXPECT_EQ(task.step(), 0);
  EXPECT_EQ(task.run().done, 3);
  Finish(scheduler, task, 5'000);
  EXPECT_EQ(Deliver(scheduler, slow)->step(), 0);
}

TEST(StepSchedulerTest, AnUnfinishedTaskGoesBeforeLaterSlicesOfItsStream) {
  StepScheduler scheduler({.threads = 4});
  const Stream stream = MustAdd(scheduler, MakePlan(4));
  const Task first = MustTake(scheduler);
  EXPECT_EQ(MustTake(scheduler).step(), 1);
  scheduler.Return(first, first.run(), 1);
  EXPECT_EQ(MustTake(scheduler).step(), 0);
  EXPECT_EQ(MustTake(scheduler).step(), 2);
}

TEST(StepSchedulerTest, ReturningATaskOfACancelledStreamFreesItsMemory) {
  StepScheduler scheduler({.threads = 2});
  const Stream stream = MustAdd(scheduler, MakePlan(64));
  const Task task = MustTake(scheduler);
  EXPECT_FALSE(task.unwanted().is_raised());
  scheduler.Cancel(stream);
  EXPECT_TRUE(task.unwanted().is_raised());
  EXPECT_GT(scheduler.budget().used_bytes(), 0);
  scheduler.Return(task, task.run(), 1);
  EXPECT_EQ(scheduler.budget().used_bytes(), 0);
  EXPECT_FALSE(scheduler.Take().task.has_value());
}

TEST(StepSchedulerTest, PeersShareThreadsHoweverManyStreamsEachHas) {
  StepScheduler scheduler({.threads = 1});
  const Stream alone = MustAdd(scheduler, MakePlan(4), {.count = kManySteps}, {}, "alone");
  std::vector<Stream> crowd;
  for (int i = 0; i < 50; ++i) {
    crowd.push_back(MustAdd(scheduler, MakePlan(4), {.count = kManySteps}, {}, "crowd"));
  }
  int of_alone = 0;
  constexpr int kTasks = 2'000;
  for (int i = 0; i < kTasks; ++i) {
    const Task task = MustTake(scheduler);
    Finish(scheduler, task, 100);
    of_alone += task.plan() == alone->plan() ? 1 : 0;
    // The consumer takes the slice, and gives it back at once.
    if (task.plan() == alone->plan()) {
      scheduler.GiveBack(*alone, Deliver(scheduler, alone));
      continue;
    }
    for (const Stream& stream : crowd) {
      if (stream->plan() != task.plan()) continue;
      scheduler.GiveBack(*stream, Deliver(scheduler, stream));
    }
  }
  EXPECT_NEAR(of_alone, kTasks / 2, kTasks / 20);
}

TEST(StepSchedulerTest, PeersShareTheBudgetHoweverManyStreamsEachHas) {
  const auto plan = MakePlan(4);
  constexpr int64_t kSlices = 64;
  StepScheduler scheduler({.threads = 16, .memory_budget_bytes = kSlices * CostOf(*plan)});
  for (int i = 0; i < 16; ++i) {
    MustAdd(scheduler, MakePlan(4), {.count = kManySteps}, {}, "crowd");
  }
  const Stream alone = MustAdd(scheduler, plan, {.count = kManySteps}, {}, "alone");
  int of_alone = 0;
  while (true) {
    const StepScheduler::Work work = scheduler.Take();
    if (!work.task.has_value()) break;
    of_alone += work.task->plan() == plan ? 1 : 0;
  }
  // A stream gets at most a quarter of the budget. The 16 streams of the crowd belong to one peer,
  // which gets half of the budget: 32 slices, 2 for each stream.
  EXPECT_EQ(of_alone, kSlices / 4);
  EXPECT_EQ(scheduler.budget().used_bytes(), (kSlices / 4 + 16 * 2) * CostOf(*plan));
}

TEST(StepSchedulerTest, BesideAnOverdueTaskOnlyOtherPeersHaveWork) {
  StepScheduler scheduler({.threads = 1});
  const Stream costly = MustAdd(scheduler, MakePlan(64), {.count = kManySteps}, {}, "costly");
  MustAdd(scheduler, MakePlan(64), {.count = kManySteps}, {}, "costly");
  const Task task = MustTake(scheduler);
  scheduler.CountOverdue(task, true);
  EXPECT_FALSE(scheduler.Take(/*beside=*/true).task.has_value());
  const Stream other = MustAdd(scheduler, MakePlan(64), {.count = kManySteps}, {}, "other");
  for (int i = 0; i < 3; ++i) {
    const StepScheduler::Work work = scheduler.Take(/*beside=*/true);
    ASSERT_TRUE(work.task.has_value());
    EXPECT_EQ(work.task->plan(), other->plan());
    scheduler.Finish(*work.task, work.task->run(), 1'000'000);
  }
  scheduler.CountOverdue(task, false);
  StepScheduler::Work work = scheduler.Take(/*beside=*/true);
  ASSERT_TRUE(work.task.has_value());
  EXPECT_NE(work.task->plan(), other->plan());
}

TEST(StepSchedulerTest, ATaskHasFewExamplesIfEachHasMillionsOfValues) {
  const auto dataset = OpenTestDataset(TestShards({20}));
  // The records have some hundred bytes, but each example has some 7 million values.
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText(
          "dataset: 'test' num_cores: 1 global_batch: 20 "
          "outputs { name: 'x' feature: 'image' dtype: UINT8 transforms { decode_jpeg {} } "
          "  transforms { resize { height: 1500 width: 1500 } } "
          "  transforms { gamma { gamma_min: 2 gamma_max: 2 } } }"),
      dataset);
  ASSERT_THAT(plan, IsOk());
  StepScheduler scheduler({.threads = 1});
  const Stream stream = MustAdd(scheduler, *plan);
  EXPECT_LE(MustTake(scheduler).examples().size() * (*plan)->example_elements(), 1 << 26);
}

TEST(StepSchedulerTest, CancellingAGiantSliceFreesItOnceItsRunningTaskEnds) {
  StepScheduler scheduler({.threads = 2});
  const Stream giant = MustAdd(scheduler, MakePlan(1 << 24));
  const Task running = MustTake(scheduler);
  scheduler.Cancel(giant);
  // The thread still writes to the slice's memory.
  EXPECT_EQ(scheduler.budget().used_bytes(), CostOf(*giant->plan()));
  EXPECT_FALSE(scheduler.Take().task.has_value());
  Finish(scheduler, running, 1);
  EXPECT_EQ(scheduler.budget().used_bytes(), 0);
}

TEST(StepSchedulerTest, TheErrorOfASliceIsDeliveredAfterAllEarlierSlices) {
  StepScheduler scheduler({.threads = 4});
  const Stream stream = MustAdd(scheduler, MakePlan(4));
  const Task first = MustTake(scheduler);
  const Task second = MustTake(scheduler);
  const Task third = MustTake(scheduler);
  const Task fourth = MustTake(scheduler);
  Finish(scheduler, third, 1, absl::DataLossError("third"));
  Finish(scheduler, second, 1, absl::DataLossError("second"));
  // The stream fails at step 1, so no later step is begun.
  EXPECT_FALSE(scheduler.Take().task.has_value());
  EXPECT_FALSE(scheduler.Next(*stream).has_value());
  Finish(scheduler, first, 1);
  EXPECT_EQ(Deliver(scheduler, stream)->step(), 0);
  const auto second_failed = StatusIs(absl::StatusCode::kDataLoss, HasSubstr("second"));
  EXPECT_THAT(*scheduler.Next(*stream), second_failed);
  EXPECT_THAT(*scheduler.Next(*stream), second_failed);
  Finish(scheduler, fourth, 1);                                         // Frees the fourth slice.
  EXPECT_EQ(scheduler.budget().used_bytes(), CostOf(*stream->plan()));  // The first slice is left.
}

TEST(StepSchedulerTest, OneLookAheadSliceIsTakenBackForAStreamThatHoldsNone) {
  const auto plan = MakePlan(4);
  StepScheduler scheduler({.threads = 2, .memory_budget_bytes = 8 * CostOf(*plan)});
  std::vector<Stream> paused;
  for (int i = 0; i < 4; ++i) paused.push_back(MustAdd(scheduler, plan));
  std::vector<Task> running;
  for (int i = 0; i < 8; ++i) running.push_back(MustTake(scheduler));
  EXPECT_FALSE(scheduler.Take().task.has_value());
  const Stream late = MustAdd(scheduler, MakePlan(4));
  // Threads still write to all slices, so no memory is free yet. The first Take() takes one slice
  // back for the late stream. The second Take() must not take back a second slice.
  EXPECT_FALSE(scheduler.Take().task.has_value());
  EXPECT_FALSE(scheduler.Take().task.has_value());
  for (const Task& task : running) Finish(scheduler, task, 1);
  EXPECT_EQ(scheduler.budget().used_bytes(), 7 * CostOf(*plan));
  EXPECT_EQ(MustTake(scheduler).plan(), late->plan());
  // The slice that was taken back had been made ahead. Each paused stream still has its next slice.
  for (const Stream& stream : paused) {
    const std::shared_ptr<SharedSlice> slice = Deliver(scheduler, stream);
    EXPECT_EQ(slice->step(), 0);
    scheduler.GiveBack(*stream, slice);
  }
}

TEST(StepSchedulerTest, AStreamThatWantsTheWholeBudgetLeavesOthersHalfTheirShare) {
  const auto plan = MakePlan(4);
  const auto whole = MakePlan(4 * 1024);
  StepScheduler scheduler({.threads = 4, .memory_budget_bytes = CostOf(*whole)});
  const int64_t share = CostOf(*whole) / 4 / CostOf(*plan);  // In slices of `plan`.
  ASSERT_GE(share, 4);
  const Stream holder = MustAdd(scheduler, plan);
  for (int64_t i = 0; i < share; ++i) {
    Finish(scheduler, MustTake(scheduler), 1);
  }
  EXPECT_FALSE(scheduler.Take().task.has_value());
  const Stream starved = MustAdd(scheduler, whole);
  EXPECT_FALSE(scheduler.Take().task.has_value());
  EXPECT_EQ(scheduler.budget().used_bytes(), share / 2 * CostOf(*plan));
  // Half of the share is two slices or more, so the holder can go on.
  const std::shared_ptr<SharedSlice> slice = Deliver(scheduler, holder);
  scheduler.GiveBack(*holder, slice);
  EXPECT_EQ(MustTake(scheduler).plan(), holder->plan());
  EXPECT_FALSE(scheduler.Take().task.has_value());
}

TEST(StepSchedulerTest, InProcessStreamsThatNobodyAwaitsGiveWayToAwaitedStreams) {
  const auto plan = MakePlan(4);
  StepScheduler scheduler({.threads = 2, .memory_budget_bytes = CostOf(*plan)});
  const auto next_task = [&](const Stream& stream) {
    const Task task = MustTake(scheduler);
    EXPECT_EQ(task.plan(), stream->plan());
    return task;
  };
  const StepRange range = {.count = kManySteps};
  const Stream stalled = MustAdd(scheduler, MakePlan(4), range, {.gives_away = true});
  const Stream late = MustAdd(scheduler, MakePlan(4), range, {.gives_away = true});
  Finish(scheduler, next_task(stalled), 1);
  EXPECT_FALSE(scheduler.Take().task.has_value());  // No consumer waits.
  int answers = 0;
  const auto count = [&](const Delivery& delivery) {
    ++answers;
    EXPECT_TRUE(delivery.ok() && delivery->has_value());
  };
  const auto finish = [&](const Task& task) {
    for (StepScheduler::Answer& answer : Finish(scheduler, task, 1)) {
      answer.waiter(std::move(answer.delivery));
    }
  };
  EXPECT_FALSE(scheduler.Next(*late).has_value());
  EXPECT_TRUE(scheduler.Wait(*late, count));
  finish(next_task(late));
  EXPECT_EQ(answers, 1);
  for (int i = 0; i < 3; ++i) {
    // No consumer waits for a slice of `stalled` yet, so slices are made ahead only for `late`.
    finish(next_task(late));
    EXPECT_NE(Deliver(scheduler, late), nullptr);
  }
  EXPECT_FALSE(scheduler.Next(*stalled).has_value());
  EXPECT_TRUE(scheduler.Wait(*stalled, count));
  const Task task = next_task(stalled);
  EXPECT_EQ(task.step(), 0);
  finish(task);
  EXPECT_EQ(answers, 2);
}

TEST(StepSchedulerTest, AnOutOfProcessStreamKeepsItsLastSliceWhenAnotherStreamWaits) {
  const auto plan = MakePlan(4);
  StepScheduler scheduler({.threads = 2, .memory_budget_bytes = CostOf(*plan)});
  const Stream paused = MustAdd(scheduler, plan);
  Finish(scheduler, MustTake(scheduler), 1);
  const Stream late = MustAdd(scheduler, MakePlan(4));
  scheduler.Wait(*late, [](const Delivery&) {});
  EXPECT_FALSE(scheduler.Take().task.has_value());
  EXPECT_NE(Deliver(scheduler, paused), nullptr);
  scheduler.Cancel(late);
}

TEST(StepSchedulerTest, LookAheadStaysWithinAheadBytesButIsAtLeastOneSlice) {
  const auto plan = MakePlan(4);
  StepScheduler scheduler({.threads = 2, .memory_budget_bytes = 100 * CostOf(*plan)});
  MustAdd(scheduler, plan, {.count = kManySteps}, {.ahead_bytes = 3 * CostOf(*plan)});
  for (int i = 0; i < 3; ++i) Finish(scheduler, MustTake(scheduler), 1);
  EXPECT_FALSE(scheduler.Take().task.has_value());
  MustAdd(scheduler, MakePlan(4), {.count = kManySteps}, {.ahead_bytes = 0});
  Finish(scheduler, MustTake(scheduler), 1);  // One slice may always be made ahead.
  EXPECT_FALSE(scheduler.Take().task.has_value());
}

TEST(StepSchedulerTest, TheOverheadOfTinySlicesCountsInTheBudget) {
  const auto plan = MakePlan(1);  // 128 bytes a slice.
  constexpr int64_t kBudget = 64 << 10;
  StepScheduler scheduler({.threads = 1000, .memory_budget_bytes = kBudget});
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(MustAdd(scheduler, plan));
  int slices = 0;
  while (scheduler.Take().task.has_value()) ++slices;
  // If only the slices' own bytes counted, 512 slices would fit.
  EXPECT_EQ(slices, 4 * (kBudget / 4 / CostOf(*plan)));
}

TEST(StepSchedulerTest, TakeReportsMoreWorkOnlyIfThereIsAny) {
  StepScheduler scheduler({.threads = 1});
  auto stream = std::make_shared<ScheduledStream>(MakePlan(4), StepRange{}, StreamMemory{}, 1);
  ASSERT_THAT(scheduler.Add(stream), IsOk());
  EXPECT_FALSE(scheduler.Take().more);
  MustAdd(scheduler, MakePlan(1 << 20));
  EXPECT_TRUE(scheduler.Take().more);
}

// ---- Streams of one plan ----

// Takes and finishes tasks until there is no more work. Returns the number of tasks.
int MakeAll(StepScheduler& scheduler) {
  int tasks = 0;
  for (StepScheduler::Work work = scheduler.Take(); work.task.has_value();
       work = scheduler.Take()) {
    Finish(scheduler, *work.task, 1);
    ++tasks;
  }
  return tasks;
}

// Takes and drops `count` slices of the stream. Calls MakeAll() whenever the next slice is not made
// yet. Returns the memory of each slice.
std::vector<const uint8_t*> Consume(StepScheduler& scheduler, const Stream& stream, int count) {
  std::vector<const uint8_t*> data;
  for (int i = 0; i < count; ++i) {
    std::shared_ptr<SharedSlice> slice = Deliver(scheduler, stream);
    if (slice == nullptr) {
      MakeAll(scheduler);
      slice = Deliver(scheduler, stream);
    }
    EXPECT_NE(slice, nullptr);
    if (slice == nullptr) return data;
    data.push_back(slice->data());
    scheduler.GiveBack(*stream, slice);
  }
  return data;
}

StepSchedulerOptions Sharing() { return {.threads = 1, .share_slices = true}; }

TEST(SliceSharingTest, ASharedSliceIsMadeOnceAndCountsOnceInTheBudget) {
  StepScheduler scheduler(Sharing());
  const auto plan = MakePlan(4);
  const Stream a = MustAdd(scheduler, plan);
  const Stream b = MustAdd(scheduler, plan);
  const Task task = MustTake(scheduler);
  EXPECT_EQ(MakeAll(scheduler), 3);  // The two streams look ahead the same four slices.
  EXPECT_EQ(Deliver(scheduler, a), nullptr);
  EXPECT_EQ(Deliver(scheduler, b), nullptr);
  Finish(scheduler, task, 1);
  const std::shared_ptr<SharedSlice> of_a = Deliver(scheduler, a);
  const std::shared_ptr<SharedSlice> of_b = Deliver(scheduler, b);
  EXPECT_EQ(of_a, of_b);
  EXPECT_EQ(scheduler.budget().used_bytes(), 4 * CostOf(*plan));
  scheduler.GiveBack(*a, of_a);
  EXPECT_EQ(scheduler.budget().used_bytes(), 4 * CostOf(*plan));
  scheduler.GiveBack(*b, of_b);
  EXPECT_EQ(scheduler.budget().used_bytes(), 3 * CostOf(*plan));
  EXPECT_EQ(scheduler.slices_shared(), 4);
  EXPECT_EQ(scheduler.examples_made(), 4 * 4);
}

TEST(SliceSharingTest, BothStreamsThatWaitForASliceAreAnswered) {
  StepScheduler scheduler(Sharing());
  const auto plan = MakePlan(4);
  const Stream a = MustAdd(scheduler, plan);
  const Stream b = MustAdd(scheduler, plan);
  for (const Stream& stream : {a, b}) scheduler.Wait(*stream, [](Delivery) {});
  const Task task = MustTake(scheduler);
  // Both streams wait for the slice that is being made. So the next task makes a slice ahead.
  const Task next = MustTake(scheduler);
  EXPECT_EQ(next.step(), 1);
  EXPECT_EQ(Finish(scheduler, task, 1).size(), 2u);
}

TEST(SliceSharingTest, ALaggingStreamGetsSlicesThatTheLeadingStreamDropped) {
  StepScheduler scheduler(Sharing());
  const auto plan = MakePlan(4);
  const Stream ahead = MustAdd(scheduler, plan);
  const Stream behind = MustAdd(scheduler, plan);
  const std::vector<const uint8_t*> made = Consume(scheduler, ahead, 20);
  EXPECT_EQ(Consume(scheduler, behind, 20), made);
  EXPECT_LE(scheduler.examples_made(), 4 * (20 + 4));  // 20 slices, and 4 that are made ahead.
}

TEST(SliceSharingTest, KeptSlicesAreBoundedAndOtherSlicesAreMadeAgain) {
  const auto plan = MakePlan(1024);
  StepScheduler scheduler(
      {.threads = 1, .memory_budget_bytes = 40 * CostOf(*plan), .share_slices = true});
  const Stream ahead = MustAdd(scheduler, plan);
  const Stream behind = MustAdd(scheduler, plan);
  Consume(scheduler, ahead, 200);
  // Each stream looks ahead four slices. Slices that are kept for sharing take at most a quarter of
  // the budget.
  EXPECT_LE(scheduler.budget().used_bytes(), (4 + 4 + 10) * CostOf(*plan));
  Consume(scheduler, behind, 200);
  EXPECT_LE(scheduler.examples_made(), 1024 * (2 * 200 - 10));
  EXPECT_GE(scheduler.slices_shared(), 10);
}

TEST(SliceSharingTest, KeptSlicesYieldToStreamsThatNeedMemory) {
  const auto plan = MakePlan(4);
  StepScheduler scheduler(
      {.threads = 1, .memory_budget_bytes = 16 * CostOf(*plan), .share_slices = true});
  const Stream ahead = MustAdd(scheduler, plan);
  const Stream behind = MustAdd(scheduler, plan);
  Consume(scheduler, ahead, 8);
  std::vector<Stream> others;
  for (int i = 0; i < 12; ++i) {
    others.push_back(MustAdd(scheduler, MakePlan(4)));
    MakeAll(scheduler);
    EXPECT_NE(Deliver(scheduler, others.back()), nullptr) << "stream " << i;
    EXPECT_LE(scheduler.budget().used_bytes(), scheduler.budget().budget_bytes());
  }
}

TEST(SliceSharingTest, ASharedSliceIsFinishedAfterItsFirstStreamIsCancelled) {
  StepScheduler scheduler(Sharing());
  const auto plan = MakePlan(64);
  const Stream a = MustAdd(scheduler, plan);
  const Stream b = MustAdd(scheduler, plan);
  const Task first = MustTake(scheduler);
  const Task second = MustTake(scheduler);
  EXPECT_EQ(first.data(), second.data());
  scheduler.Cancel(a);
  Finish(scheduler, first, 1);
  Finish(scheduler, second, 1);
  MakeAll(scheduler);
  const std::shared_ptr<SharedSlice> slice = Deliver(scheduler, b);
  ASSERT_NE(slice, nullptr);
  EXPECT_EQ(slice->data(), first.data());
}

TEST(SliceSharingTest, AnUnfinishedTaskIsMadeForOtherStreamsOfItsSlice) {
  StepScheduler scheduler(Sharing());
  const auto plan = MakePlan(4);
  const Stream a = MustAdd(scheduler, plan);
  const Stream b = MustAdd(scheduler, plan);
  const Task task = MustTake(scheduler);
  MakeAll(scheduler);
  scheduler.Return(task, task.run(), 1);
  scheduler.Cancel(a);
  EXPECT_EQ(MakeAll(scheduler), 1);
  const std::shared_ptr<SharedSlice> slice = Deliver(scheduler, b);
  ASSERT_NE(slice, nullptr);
  EXPECT_EQ(slice->step(), 0);
  // A stream that comes later finds the slice done.
  const Stream c = MustAdd(scheduler, plan);
  EXPECT_EQ(Deliver(scheduler, c), slice);
}

TEST(SliceSharingTest, AnErrorInASharedSliceEndsAllItsStreams) {
  StepScheduler scheduler(Sharing());
  const auto plan = MakePlan(4);
  const Stream a = MustAdd(scheduler, plan);
  const Stream b = MustAdd(scheduler, plan);
  Consume(scheduler, a, 1);
  Consume(scheduler, b, 1);
  std::vector<Task> tasks;
  scheduler.Cancel(MustAdd(scheduler, MakePlan(4)));
  while (true) {
    StepScheduler::Work work = scheduler.Take();
    if (!work.task.has_value()) break;
    tasks.push_back(*std::move(work.task));
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    Finish(scheduler, tasks[i], 1, i == 0 ? absl::DataLossError("damage") : absl::OkStatus());
  }
  for (const Stream& stream : {a, b}) {
    std::optional<Delivery> delivery = scheduler.Next(*stream);
    while (delivery.has_value() && delivery->ok()) {
      scheduler.GiveBack(*stream, ***delivery);
      delivery = scheduler.Next(*stream);
    }
    ASSERT_TRUE(delivery.has_value());
    EXPECT_THAT(delivery->status(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damage")));
  }
}

TEST(SliceSharingTest, NoSlicesAreKeptAfterTheLastStreamIsCancelled) {
  StepScheduler scheduler(Sharing());
  const auto plan = MakePlan(4);
  const Stream a = MustAdd(scheduler, plan);
  const Stream b = MustAdd(scheduler, plan);
  Consume(scheduler, a, 12);
  scheduler.Cancel(b);
  scheduler.Cancel(a);
  EXPECT_EQ(scheduler.budget().used_bytes(), 0);
}

TEST(SliceSharingTest, StreamsOfDifferentPlansOrStepsOrThatGiveAwaySlicesShareNothing) {
  StepScheduler scheduler(Sharing());
  const auto plan = MakePlan(4);
  MustAdd(scheduler, plan, {.count = 4, .stride = 2});
  MustAdd(scheduler, plan, {.first_step = 1, .count = 4, .stride = 2});
  MustAdd(scheduler, MakePlan(4), {.count = 4});
  MustAdd(scheduler, plan, {.count = 4}, {.gives_away = true});
  MustAdd(scheduler, plan, {.count = 4}, {.gives_away = true});
  EXPECT_EQ(MakeAll(scheduler), 5 * 4);
  EXPECT_EQ(scheduler.slices_shared(), 0);
}

TEST(SliceSharingTest, StreamsWithDifferentStridesShareTheirCommonSteps) {
  StepScheduler scheduler(Sharing());
  const auto plan = MakePlan(4);
  const Stream all = MustAdd(scheduler, plan, {.count = 12});
  const Stream third = MustAdd(scheduler, plan, {.first_step = 2, .count = 4, .stride = 3});
  const std::vector<const uint8_t*> of_all = Consume(scheduler, all, 12);
  const std::vector<const uint8_t*> of_third = Consume(scheduler, third, 4);
  ASSERT_EQ(of_third.size(), 4u);
  EXPECT_EQ(scheduler.slices_shared(), 4);
  EXPECT_EQ(scheduler.examples_made(), 4 * 12);
}

std::shared_ptr<const FeedPlan> MakeFarPlan(int64_t global_batch) {
  return MakePlan(global_batch, OpenFarDataset(TestShards({20}), std::make_shared<Gate>()));
}

TEST(StepSchedulerTest, RecordsOfFarShardsAreMadeOnlyOnceTheyAreRead) {
  StepScheduler scheduler({.threads = 1});
  // Two steps, each of which is one task.
  const Stream stream = MustAdd(scheduler, MakeFarPlan(8), {.count = 2});
  EXPECT_FALSE(scheduler.Take().task.has_value());
  const Task first = MustTakeToRead(scheduler);
  const Task second = MustTakeToRead(scheduler);
  EXPECT_FALSE(scheduler.TakeToRead([](const FeedPlan&) { return true; }).task.has_value());
  EXPECT_FALSE(scheduler.Take().task.has_value());
  scheduler.Arrive(second, second.run());
  const Task made = MustTake(scheduler);
  EXPECT_EQ(made.step(), second.step());
  Finish(scheduler, made, 1);
  EXPECT_EQ(Deliver(scheduler, stream), nullptr);
  scheduler.Arrive(first, first.run());
  Finish(scheduler, MustTake(scheduler), 1);
  EXPECT_NE(Deliver(scheduler, stream), nullptr);
}

// TakeReadsChanged() is true if there may be something to read, or if a slice with reads was
// dropped since the last call.
TEST(StepSchedulerTest, TakeReadsChangedReportsNewAndDroppedReads) {
  StepScheduler scheduler({.threads = 1});
  MustAdd(scheduler, MakePlan(4));
  EXPECT_FALSE(scheduler.TakeReadsChanged());  // Local records are not read ahead.
  const Stream stream = MustAdd(scheduler, MakeFarPlan(8), {.count = 2});
  EXPECT_TRUE(scheduler.TakeReadsChanged());
  const Task first = MustTakeToRead(scheduler);
  EXPECT_TRUE(scheduler.TakeReadsChanged());
  const Task second = MustTakeToRead(scheduler);
  EXPECT_FALSE(scheduler.TakeReadsChanged());
  scheduler.Cancel(stream);
  EXPECT_TRUE(scheduler.TakeReadsChanged());  // The stream's two reads are not wanted any more.
  EXPECT_FALSE(scheduler.TakeReadsChanged());
}

TEST(StepSchedulerTest, ATaskOfAWarmStreamSkipsTheReadUnlessItsRecordsAreMissing) {
  StepScheduler scheduler({.threads = 1});
  const Stream stream = MustAdd(scheduler, MakeFarPlan(8), {.count = 4});
  const Task first = MustTakeToRead(scheduler);
  scheduler.Arrive(first, first.run(), /*warm=*/true);
  // The next slice is not read ahead. Only a thread that computes may begin it.
  const auto any = [](const FeedPlan&) { return true; };
  EXPECT_FALSE(scheduler.TakeReadsChanged());
  EXPECT_FALSE(scheduler.TakeToRead(any).task.has_value());
  Finish(scheduler, MustTake(scheduler), 1);
  EXPECT_NE(Deliver(scheduler, stream), nullptr);
  const Task second = MustTake(scheduler);
  EXPECT_EQ(second.examples(), (ExampleRange{0, 8}));
  scheduler.ReadFirst(second);
  EXPECT_FALSE(scheduler.Take().task.has_value());
  EXPECT_TRUE(scheduler.TakeReadsChanged());
  const Task third = MustTakeToRead(scheduler);
  EXPECT_EQ(third.step(), second.step() + 1);
  scheduler.Arrive(second, second.run());
  const Task made = MustTake(scheduler);
  EXPECT_EQ(made.step(), second.step());
  Finish(scheduler, made, 1);
  EXPECT_NE(Deliver(scheduler, stream), nullptr);
}

TEST(StepSchedulerTest, ACancelledSliceFreesItsMemoryOnceItsReadArrives) {
  StepScheduler scheduler({.threads = 1});
  const Stream stream = MustAdd(scheduler, MakeFarPlan(8), {.count = 4});
  const Task first = MustTakeToRead(scheduler);
  scheduler.Arrive(first, first.run(), /*warm=*/true);
  Finish(scheduler, MustTake(scheduler), 1);
  const Task second = MustTake(scheduler);
  scheduler.ReadFirst(second);
  scheduler.Cancel(stream).Tell();
  EXPECT_TRUE(second.unwanted().is_raised());
  EXPECT_GT(scheduler.budget().used_bytes(), 0);
  scheduler.Arrive(second, second.run());
  EXPECT_EQ(scheduler.budget().used_bytes(), 0);
}

TEST(StepSchedulerTest, PaddingOfAFarSliceIsMadeWithoutARead) {
  StepScheduler scheduler({.threads = 1});
  // An epoch has 20 records in steps of 16. So its second step has 4 records and padding.
  const Stream stream = MustAdd(scheduler, MakeFarPlan(16), {.first_step = 1, .count = 1});
  const Task records = MustTakeToRead(scheduler);
  EXPECT_EQ(records.examples(), (ExampleRange{0, 4}));
  const Task padding = MustTake(scheduler);
  EXPECT_EQ(padding.examples(), (ExampleRange{4, 16}));
}

TEST(StepSchedulerTest, AFarSliceOfOnlyPaddingIsMadeWithoutARead) {
  StepScheduler scheduler({.threads = 1});
  // The second step has one record, in the slice of the first core.
  const auto plan =
      MakePlan(16, OpenFarDataset(TestShards({17}), std::make_shared<Gate>()), /*cores=*/2);
  const Stream stream =
      MustAdd(scheduler, plan, {.first_step = 1, .count = 1, .core_begin = 1, .core_end = 2});
  ASSERT_FALSE(scheduler.TakeToRead([](const FeedPlan&) { return true; }).task.has_value());
  const Task padding = MustTake(scheduler);
  EXPECT_EQ(padding.examples(), (ExampleRange{0, 8}));
  Finish(scheduler, padding, 1);
  EXPECT_NE(Deliver(scheduler, stream), nullptr);
}

TEST(StepSchedulerTest, ReadsAreTakenOnlyForPlansThatMayRead) {
  StepScheduler scheduler({.threads = 1});
  const Stream hung = MustAdd(scheduler, MakeFarPlan(4));
  const Stream healthy = MustAdd(scheduler, MakeFarPlan(4));
  for (int i = 0; i < 2; ++i) {
    StepScheduler::Work work =
        scheduler.TakeToRead([&](const FeedPlan& plan) { return &plan != hung->plan().get(); });
    ASSERT_TRUE(work.task.has_value());
    EXPECT_EQ(work.task->plan(), healthy->plan());
  }
}

TEST(StepSchedulerTest, AFarStreamWithoutMemoryGetsSomeOfTheLookAheadOfLocalStreams) {
  const auto near = MakePlan(4);
  StepScheduler scheduler({.threads = 2, .memory_budget_bytes = 8 * CostOf(*near)});
  for (int i = 0; i < 4; ++i) MustAdd(scheduler, near);
  std::vector<Task> running;
  for (int i = 0; i < 8; ++i) running.push_back(MustTake(scheduler));
  const auto far = MakeFarPlan(4);
  MustAdd(scheduler, far);
  const auto may_read = [](const FeedPlan&) { return true; };
  EXPECT_FALSE(scheduler.TakeToRead(may_read).task.has_value());
  for (const Task& task : running) Finish(scheduler, task, 1);
  // No local stream takes the memory that came back.
  EXPECT_FALSE(scheduler.Take().task.has_value());
  EXPECT_EQ(MustTakeToRead(scheduler).plan(), far);
}

}  // namespace
}  // namespace systole
