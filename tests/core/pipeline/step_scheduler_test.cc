#include "core/pipeline/step_scheduler.h"

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
#include "tests/core/pipeline/test_dataset.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;
using Stream = std::shared_ptr<ScheduledStream>;
using Task = StepScheduler::Task;

constexpr int64_t kManySteps = 1 << 20;

std::shared_ptr<const FeedPlan> MakePlan(int64_t global_batch) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
      FeedPlan::Create(SpecFromText(absl::StrCat(
                           "dataset: 'test' num_cores: 1 tail: PAD global_batch: ", global_batch,
                           " outputs { name: 'id' feature: 'record_id' dtype: INT32 }")),
                       OpenTestDataset(TestShards({20})));
  EXPECT_THAT(plan, IsOk());
  return *plan;
}

int64_t CostOf(const FeedPlan& plan) { return plan.layout().slice_bytes() + kSliceOverheadBytes; }

Stream MustAdd(StepScheduler& scheduler, const std::shared_ptr<const FeedPlan>& plan) {
  auto stream = std::make_shared<ScheduledStream>(plan, StepRange{.count = kManySteps},
                                                  StreamMemory{}, kManySteps);
  EXPECT_THAT(scheduler.Add(stream), IsOk());
  return stream;
}

// The next task, as if a thread had made it at `cost` an example.
Task MustTake(StepScheduler& scheduler) {
  StepScheduler::Work work = scheduler.Take();
  EXPECT_TRUE(work.task.has_value());
  return *std::move(work.task);
}

// What the consumer gets, or null if it has to wait.
std::unique_ptr<MadeSlice> Deliver(StepScheduler& scheduler, const Stream& stream) {
  std::optional<Delivery> delivery = scheduler.Next(*stream);
  if (!delivery.has_value()) return nullptr;
  EXPECT_TRUE(delivery->ok() && (*delivery)->has_value());
  return std::make_unique<MadeSlice>(***std::move(delivery));
}

TEST(StepSchedulerTest, NothingIsBegunBeforeAThreadAsks) {
  StepScheduler scheduler({.threads = 2});
  EXPECT_FALSE(scheduler.Take().task.has_value());
  const Stream stream = MustAdd(scheduler, MakePlan(4));
  EXPECT_EQ(scheduler.buffers().used_bytes(), 0);
  const Task task = MustTake(scheduler);
  EXPECT_EQ(task.plan(), stream->plan());
  EXPECT_EQ(task.examples(), (ExampleRange{0, 4}));
  EXPECT_EQ(scheduler.buffers().used_bytes(), CostOf(*stream->plan()));
}

TEST(StepSchedulerTest, ASliceOfMillionsOfExamplesIsCutAsItIsTaken) {
  StepScheduler scheduler({.threads = 2});
  const Stream stream = MustAdd(scheduler, MakePlan(1 << 24));
  const Task records = MustTake(scheduler);
  EXPECT_EQ(records.examples().begin, 0);
  EXPECT_LE(records.examples().end, 20);  // Behind these it is padding.
  int64_t end = records.examples().end;
  for (int i = 0; i < 10; ++i) {
    const Task task = MustTake(scheduler);
    EXPECT_EQ(task.data(), records.data());
    EXPECT_EQ(task.examples().begin, end);
    EXPECT_LE(task.examples().size(), 4096);
    end = task.examples().end;
  }
  EXPECT_GE(end, 8 * 4096);  // And not cut up into crumbs.
}

// A task mixes the groups that it makes, so none may be shared by two.
TEST(StepSchedulerTest, TasksHaveWholeGroupsAndThePaddingOfTheLastOne) {
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
      // The 20 records, and what their last group lacks.
      if (end < 20) {
        EXPECT_LE(task.examples().end, (20 + group - 1) / group * group);
      }
      end = task.examples().end;
    }
    EXPECT_EQ(end, batch);
  }
}

// The healthy stream's slice is one task, the giant's are thousands: they alternate by cost.
TEST(StepSchedulerTest, AGiantSliceHoldsNobodyUp) {
  StepScheduler scheduler({.threads = 1});
  const Stream giant = MustAdd(scheduler, MakePlan(1 << 24));
  const Stream healthy = MustAdd(scheduler, MakePlan(4));
  constexpr double kTaskCost = 1000;
  int tasks = 0;
  for (int slices = 0; slices < 100;) {
    const Task task = MustTake(scheduler);
    ++tasks;
    scheduler.Finish(task, kTaskCost, absl::OkStatus());
    std::unique_ptr<MadeSlice> slice = Deliver(scheduler, healthy);
    if (slice == nullptr) continue;
    EXPECT_EQ(slice->step, slices++);
    scheduler.GiveBack(*healthy, std::move(slice->buffer));
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
    scheduler.Finish(task, cost, absl::OkStatus());
    std::unique_ptr<MadeSlice> slice = Deliver(scheduler, is_dear ? dear : cheap);
    ASSERT_NE(slice, nullptr);
    scheduler.GiveBack(is_dear ? *dear : *cheap, std::move(slice->buffer));
  }
  // Up to a few tasks, and the guess at the beginning.
  EXPECT_NEAR(cheap_cost, dear_cost, 100'000);
}

TEST(StepSchedulerTest, CancellingAGiantSliceIsDoneAtOnce) {
  StepScheduler scheduler({.threads = 2});
  const Stream giant = MustAdd(scheduler, MakePlan(1 << 24));
  const Task running = MustTake(scheduler);
  scheduler.Cancel(giant);
  // The thread still writes to its memory.
  EXPECT_EQ(scheduler.buffers().used_bytes(), CostOf(*giant->plan()));
  EXPECT_FALSE(scheduler.Take().task.has_value());
  scheduler.Finish(running, 1, absl::OkStatus());
  EXPECT_EQ(scheduler.buffers().used_bytes(), 0);
}

TEST(StepSchedulerTest, TheErrorOfASliceComesBehindAllSlicesBefore) {
  StepScheduler scheduler({.threads = 4});
  const Stream stream = MustAdd(scheduler, MakePlan(4));
  const Task first = MustTake(scheduler);
  const Task second = MustTake(scheduler);
  const Task third = MustTake(scheduler);
  const Task fourth = MustTake(scheduler);
  scheduler.Finish(third, 1, absl::DataLossError("third"));
  scheduler.Finish(second, 1, absl::DataLossError("second"));
  EXPECT_FALSE(scheduler.Take().task.has_value());  // Nobody would get more.
  EXPECT_FALSE(scheduler.Next(*stream).has_value());
  scheduler.Finish(first, 1, absl::OkStatus());
  EXPECT_EQ(Deliver(scheduler, stream)->step, 0);
  const auto second_failed = StatusIs(absl::StatusCode::kDataLoss, HasSubstr("second"));
  EXPECT_THAT(*scheduler.Next(*stream), second_failed);
  EXPECT_THAT(*scheduler.Next(*stream), second_failed);
  scheduler.Finish(fourth, 1, absl::OkStatus());                         // Gives its memory back.
  EXPECT_EQ(scheduler.buffers().used_bytes(), CostOf(*stream->plan()));  // That of the first.
}

TEST(StepSchedulerTest, LookAheadComesBackForAStreamThatHoldsNothing) {
  const auto plan = MakePlan(4);
  StepScheduler scheduler({.threads = 2, .memory_budget_bytes = 8 * CostOf(*plan)});
  std::vector<Stream> paused;
  for (int i = 0; i < 4; ++i) paused.push_back(MustAdd(scheduler, plan));
  std::vector<Task> running;
  for (int i = 0; i < 8; ++i) running.push_back(MustTake(scheduler));
  EXPECT_FALSE(scheduler.Take().task.has_value());
  const Stream late = MustAdd(scheduler, MakePlan(4));
  // All slices are still written to: one is on its way back, and no second one.
  EXPECT_FALSE(scheduler.Take().task.has_value());
  EXPECT_FALSE(scheduler.Take().task.has_value());
  for (const Task& task : running) scheduler.Finish(task, 1, absl::OkStatus());
  EXPECT_EQ(scheduler.buffers().used_bytes(), 7 * CostOf(*plan));
  EXPECT_EQ(MustTake(scheduler).plan(), late->plan());
  // What was taken away is begun again when there is room.
  std::vector<int64_t> steps;
  for (const Stream& stream : paused) {
    std::unique_ptr<MadeSlice> slice = Deliver(scheduler, stream);
    EXPECT_EQ(slice->step, 0);
    scheduler.GiveBack(*stream, std::move(slice->buffer));
  }
}

TEST(StepSchedulerTest, AStreamThatWantsTheWholeBudgetLeavesOthersHalfTheirShare) {
  const auto plan = MakePlan(4);
  const auto whole = MakePlan(4 * 1024);
  StepScheduler scheduler({.threads = 4, .memory_budget_bytes = CostOf(*whole)});
  const int64_t share = CostOf(*whole) / 4 / CostOf(*plan);  // In slices.
  ASSERT_GE(share, 4);
  const Stream holder = MustAdd(scheduler, plan);
  for (int64_t i = 0; i < share; ++i) {
    scheduler.Finish(MustTake(scheduler), 1, absl::OkStatus());
  }
  EXPECT_FALSE(scheduler.Take().task.has_value());
  const Stream starved = MustAdd(scheduler, whole);
  EXPECT_FALSE(scheduler.Take().task.has_value());
  EXPECT_EQ(scheduler.buffers().used_bytes(), share / 2 * CostOf(*plan));
  // So it may go on, two slices at a time and more.
  std::unique_ptr<MadeSlice> slice = Deliver(scheduler, holder);
  scheduler.GiveBack(*holder, std::move(slice->buffer));
  EXPECT_EQ(MustTake(scheduler).plan(), holder->plan());
  EXPECT_FALSE(scheduler.Take().task.has_value());
}

TEST(StepSchedulerTest, WhatStandsAroundTinySlicesIsInTheBudget) {
  const auto plan = MakePlan(1);  // 128 bytes a slice.
  constexpr int64_t kBudget = 64 << 10;
  StepScheduler scheduler({.threads = 1000, .memory_budget_bytes = kBudget});
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(MustAdd(scheduler, plan));
  int slices = 0;
  while (scheduler.Take().task.has_value()) ++slices;
  EXPECT_EQ(slices, 4 * (kBudget / 4 / CostOf(*plan)));  // Not 512, as of bytes alone.
}

TEST(StepSchedulerTest, AnotherThreadIsToldOnlyOfMoreWork) {
  StepScheduler scheduler({.threads = 1});
  auto stream = std::make_shared<ScheduledStream>(MakePlan(4), StepRange{}, StreamMemory{}, 1);
  ASSERT_THAT(scheduler.Add(stream), IsOk());
  EXPECT_FALSE(scheduler.Take().more);
  MustAdd(scheduler, MakePlan(1 << 20));
  EXPECT_TRUE(scheduler.Take().more);
}

}  // namespace
}  // namespace systole
