// Calls a StepScheduler at random: as threads, consumers and a WorkerWatch call it, in any order
// that is possible in a StepEngine. Compares the results with a model of the slices and their
// memory.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/engine/step_scheduler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using Task = SliceTask;
using Slice = std::shared_ptr<SharedSlice>;

constexpr int kSeeds = 400;
constexpr int kActions = 2000;
constexpr int kThreads = 6;
constexpr int kPeers = 4;
constexpr int kMaxConsumers = 10;
// The budget has room for about ten slices. So slices that were made ahead for a stream are often
// taken back, to make room for another stream.
constexpr int64_t kBudgetBytes = int64_t{24} << 10;

std::shared_ptr<const FeedPlan> MakePlan(const std::shared_ptr<Dataset>& dataset, int batch,
                                         int cores, const std::string& mix = "") {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText(absl::StrCat(
          "dataset: 'test' epochs: 8 tail: PAD global_batch: ", batch, " num_cores: ", cores,
          " outputs { name: 'x' feature: 'path' shape: [1, 3, 1] dtype: FLOAT32 } ", mix)),
      dataset);
  EXPECT_THAT(plan, IsOk());
  return *plan;
}

// Makes records that are so large that a task has only 8 of them. So a slice has several tasks.
std::shared_ptr<Dataset> LargeRecords() {
  ShardBuilder builder;
  for (int i = 0; i < 60; ++i) {
    builder.Add(ExampleBuilder()
                    .AddFloats("path", {1, 2, 3})
                    .AddBytes("filling", std::string(size_t{32} << 10, 'x'))
                    .Serialize());
  }
  return OpenTestDataset({builder.Build()});
}

// Whether example `number` of a slice fails. The answer does not depend on the thread or the time.
// One slice of eleven has examples that fail.
bool Fails(const FeedPlan& plan, int64_t step, int core, int64_t number) {
  const int64_t slice = step * 7 + core * 3 + plan.layout().per_core_batch();
  return slice % 11 == 0 && (number + step) % 13 == 5;
}

struct Consumer {
  std::shared_ptr<ScheduledStream> stream;
  StepRange range;
  int64_t num_slices = 0;
  bool gives_away = false;
  int64_t delivered = 0;
  std::vector<Slice> held;
  bool waits = false;
  bool cancelled = false;
  bool ended = false;  // The consumer has got the feed's end or an error.

  // Step and core of the slice that comes next.
  int64_t step() const { return range.first_step + delivered / range.num_cores() * range.stride; }
  int core() const { return range.core_begin + static_cast<int>(delivered % range.num_cores()); }
};

class Model {
 public:
  Model(int seed, const std::shared_ptr<Dataset>& dataset)
      : shares_(seed % 2 == 0),
        random_(static_cast<uint32_t>(seed)),
        scheduler_({.threads = 3, .memory_budget_bytes = kBudgetBytes, .share_slices = shares_}) {
    plans_ = {MakePlan(dataset, 100, 1), MakePlan(dataset, 40, 2), MakePlan(dataset, 4, 1),
              MakePlan(dataset, 48, 2, "mix { group: 3 images: 'x' mixup {} }")};
  }

  void Run() {
    for (int i = 0; i < kActions && !::testing::Test::HasFailure(); ++i) Act();
    if (!::testing::Test::HasFailure()) End();
  }

  int64_t delivered() const { return delivered_; }
  int64_t returned() const { return returned_; }
  int64_t failed() const { return failed_; }
  int64_t shared() const { return scheduler_.slices_shared(); }

 private:
  struct Running {
    Task task;
    bool overdue = false;
  };

  int64_t Pick(int64_t count) {
    return std::uniform_int_distribution<int64_t>(0, count - 1)(random_);
  }

  void Act() {
    const int64_t action = Pick(100);
    if (action < 4) {
      Open();
    } else if (action < 30) {
      Take(/*beside=*/Pick(3) == 0);
    } else if (action < 45) {
      Stop(/*finish=*/false);
    } else if (action < 65) {
      Stop(/*finish=*/true);
    } else if (Consumer* const consumer = AnyConsumer(); consumer == nullptr) {
      return;
    } else if (action < 80) {
      Next(*consumer);
    } else if (action < 92) {
      GiveBack(*consumer);
    } else if (action < 94) {
      Cancel(*consumer);
    } else if (action < 98) {
      Watch();
    } else if (action < 99) {
      Abandon();
    } else {
      Block();
    }
  }

  void Open() {
    if (consumers_.size() == kMaxConsumers) return;
    // Most streams have the first plan, so several streams often need the same slices.
    const auto& plan = plans_[Pick(2) == 0 ? 0 : static_cast<size_t>(Pick(std::ssize(plans_)))];
    auto consumer = std::make_unique<Consumer>();
    StepRange& range = consumer->range;
    range = {.first_step = Pick(3), .count = 1 + Pick(12), .stride = 1 + Pick(2)};
    range.core_begin = static_cast<int>(Pick(plan->num_cores()));
    range.core_end =
        range.core_begin + 1 + static_cast<int>(Pick(plan->num_cores() - range.core_begin));
    const absl::StatusOr<int64_t> num_slices = CountSlices(*plan, range);
    if (!num_slices.ok()) return;  // The range begins after the feed's end.
    consumer->num_slices = *num_slices;
    StreamMemory memory;
    if (Pick(4) == 0) memory.window_bytes = 1;
    if (Pick(4) == 0) memory.ahead_bytes = Pick(kBudgetBytes);
    consumer->gives_away = memory.gives_away = !shares_ && Pick(2) == 0;
    consumer->stream = std::make_shared<ScheduledStream>(plan, range, memory, *num_slices,
                                                         absl::StrCat("peer ", Pick(kPeers)));
    ASSERT_THAT(scheduler_.Add(consumer->stream), IsOk());
    consumers_.push_back(std::move(consumer));
  }

  Consumer* AnyConsumer() {
    if (consumers_.empty()) return nullptr;
    return consumers_[static_cast<size_t>(Pick(std::ssize(consumers_)))].get();
  }

  void Next(Consumer& consumer) {
    if (consumer.waits) return;
    std::optional<Delivery> delivery = scheduler_.Next(*consumer.stream);
    if (delivery.has_value()) return Deliver(consumer, *std::move(delivery));
    consumer.waits = true;
    scheduler_.Wait(*consumer.stream, [this, &consumer](Delivery delivery) {
      EXPECT_TRUE(std::exchange(consumer.waits, false));
      Deliver(consumer, std::move(delivery));
    });
  }

  void Deliver(Consumer& consumer, Delivery delivery) {
    const FeedPlan& plan = *consumer.stream->plan();
    ++answers_;
    if (!delivery.ok()) {
      consumer.ended = true;
      if (absl::IsDataLoss(delivery.status())) {
        ++failed_;
        EXPECT_EQ(delivery.status().message(),
                  ErrorOf(plan, consumer.step(), consumer.core(), 0, plan.layout().per_core_batch())
                      .message());
      } else if (absl::IsUnavailable(delivery.status())) {
        EXPECT_TRUE(hung_.contains(&plan));
      } else {
        EXPECT_TRUE(consumer.cancelled) << delivery.status();
      }
      return;
    }
    if (!delivery->has_value()) {
      consumer.ended = true;
      EXPECT_EQ(consumer.delivered, consumer.num_slices);
      return;
    }
    EXPECT_FALSE(consumer.ended);
    const Slice slice = **std::move(delivery);
    EXPECT_EQ(slice->step(), consumer.step());
    EXPECT_EQ(slice->core(), consumer.core());
    EXPECT_TRUE(slice->is_done() && !slice->is_dropped());
    EXPECT_THAT(slice->error(), IsOk());
    EXPECT_THAT(
        made_[slice->data()],
        ::testing::AllOf(::testing::SizeIs(plan.layout().per_core_batch()), ::testing::Each(1)));
    ++consumer.delivered;
    ++delivered_;
    consumer.held.push_back(slice);
  }

  void GiveBack(Consumer& consumer) {
    if (consumer.held.empty()) return;
    const auto at = consumer.held.begin() + Pick(std::ssize(consumer.held));
    const Slice slice = *at;
    consumer.held.erase(at);
    if (consumer.gives_away) return scheduler_.TakeBack(*slice);
    scheduler_.GiveBack(*consumer.stream, slice).Tell();
  }

  void Cancel(Consumer& consumer) {
    consumer.cancelled = true;
    scheduler_.Cancel(consumer.stream).Tell();
    EXPECT_FALSE(consumer.waits);
    while (!consumer.held.empty()) GiveBack(consumer);
    std::erase_if(consumers_, [&](const auto& known) { return known.get() == &consumer; });
  }

  // A thread takes a task with StepScheduler::Take(). Returns false if all threads are busy, or if
  // there is no work.
  bool Take(bool beside) {
    if (running_.size() == kThreads) return false;
    StepScheduler::Work work = scheduler_.Take(beside);
    const bool found = !work.empty();
    work.answer.Tell();
    if (!work.task.has_value()) return found;
    const Task& task = *work.task;
    EXPECT_FALSE(task.unwanted().is_raised());
    if (task.examples().begin == 0 && task.run().done == 0) {
      // The task begins a new slice. No other task and no consumer may use this slice's memory.
      for (const Running& other : running_) EXPECT_NE(other.task.data(), task.data());
      for (const auto& consumer : consumers_) {
        for (const Slice& held : consumer->held) EXPECT_NE(held->data(), task.data());
      }
      made_[task.data()].assign(static_cast<size_t>(task.plan()->layout().per_core_batch()), 0);
    }
    running_.push_back({.task = task});
    return true;
  }

  static absl::Status ErrorOf(const FeedPlan& plan, int64_t step, int core, int64_t begin,
                              int64_t end) {
    for (int64_t number = begin; number < end; ++number) {
      if (!Fails(plan, step, core, number)) continue;
      return absl::DataLossError(
          absl::StrCat("example ", number, " of core ", core, " of step ", step));
    }
    return absl::OkStatus();
  }

  // A thread ends its turn. If `finish` is true, the thread has made all examples of its task.
  // Otherwise some of them may be left.
  void Stop(bool finish) {
    if (running_.empty()) return;
    const auto at = running_.begin() + Pick(std::ssize(running_));
    const Running stopped = *at;
    running_.erase(at);
    const Task& task = stopped.task;
    if (stopped.overdue) scheduler_.CountOverdue(task, false);
    ExampleRun run = task.run();
    const int64_t left = run.examples.size() - run.done;
    const int64_t made = finish || left == 1 ? left : 1 + Pick(left - 1);
    for (int64_t i = 0; i < made; ++i) {
      const int64_t number = run.examples.begin + run.done + i;
      if (!task.unwanted().is_raised()) ++made_[task.data()][static_cast<size_t>(number)];
      run.error.Add(number, ErrorOf(*task.plan(), task.step(), task.core(), number, number + 1));
    }
    run.done += made;
    const auto cost = static_cast<double>(made * (1 + Pick(100)));
    if (made == left) return StepScheduler::TellAll(scheduler_.Finish(task, run, cost));
    ++returned_;
    StepScheduler::TellAll(scheduler_.Return(task, std::move(run), cost));
  }

  void Watch() {
    if (running_.empty()) return;
    Running& running = running_[static_cast<size_t>(Pick(std::ssize(running_)))];
    running.overdue = !running.overdue;
    scheduler_.CountOverdue(running.task, running.overdue);
  }

  void Abandon() {
    if (running_.empty()) return;
    const Task task = running_[static_cast<size_t>(Pick(std::ssize(running_)))].task;
    hung_.insert(task.plan().get());
    StepScheduler::TellAll(scheduler_.Abandon(task, absl::UnavailableError("its read hangs")));
    EXPECT_TRUE(task.unwanted().is_raised());
  }

  // Blocks a plan until Block() is called again. Either no task of the plan is taken, or all
  // streams of the plan fail.
  void Block() {
    const FeedPlan* const blocked = plans_[static_cast<size_t>(Pick(std::ssize(plans_)))].get();
    const bool fails = Pick(4) == 0;
    if (fails) hung_.insert(blocked);
    StepScheduler::TellAll(
        scheduler_.SetBlocked([&](const FeedPlan& plan) -> std::optional<absl::Status> {
          if (&plan != blocked) return std::nullopt;
          return fails ? absl::UnavailableError("its storage hangs") : absl::OkStatus();
        }));
  }

  // Lets threads and consumers go on until each consumer has got all its slices or an error. Then
  // all memory must be free again.
  void End() {
    StepScheduler::TellAll(scheduler_.SetBlocked([](const FeedPlan&) { return std::nullopt; }));
    while (!running_.empty()) Stop(/*finish=*/false);
    const auto waits = [](const auto& consumer) { return !consumer->ended; };
    while (std::any_of(consumers_.begin(), consumers_.end(), waits)) {
      const int64_t before = answers_;
      for (const auto& consumer : consumers_) {
        while (!consumer->held.empty()) GiveBack(*consumer);
        if (!consumer->ended) Next(*consumer);
      }
      // No task is overdue any more, so Take() leaves out no peer.
      bool works = false;
      while (Take(/*beside=*/true)) works = true;
      while (!running_.empty()) Stop(/*finish=*/Pick(2) == 0);
      const bool stands = !works && answers_ == before;
      ASSERT_FALSE(stands) << "a consumer waits, and there is no work";
    }
    while (!consumers_.empty()) Cancel(*consumers_.back());
    EXPECT_EQ(scheduler_.streams().size(), 0u);
    EXPECT_EQ(scheduler_.budget().used_bytes(), 0);
  }

  const bool shares_;
  std::mt19937 random_;
  StepScheduler scheduler_;
  std::vector<std::shared_ptr<const FeedPlan>> plans_;
  std::vector<std::unique_ptr<Consumer>> consumers_;
  std::vector<Running> running_;
  // How often each example was made. The key is the slice's memory.
  std::map<const uint8_t*, std::vector<int>> made_;
  std::set<const FeedPlan*> hung_;  // Plans with a task that hung.
  int64_t answers_ = 0;
  int64_t delivered_ = 0;
  int64_t returned_ = 0;
  int64_t failed_ = 0;
};

TEST(StepSchedulerRandomTest, EverySliceIsMadeOnceAndAllMemoryComesBack) {
  const std::shared_ptr<Dataset> dataset = LargeRecords();
  int64_t delivered = 0, returned = 0, failed = 0, shared = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Model model(seed, dataset);
    model.Run();
    if (HasFailure()) return;
    delivered += model.delivered();
    returned += model.returned();
    failed += model.failed();
    shared += model.shared();
  }
  // The test shows something only if each of these has happened often.
  EXPECT_GT(delivered, 1000);
  EXPECT_GT(returned, 1000);
  EXPECT_GT(failed, 20);
  EXPECT_GT(shared, 100);
  RecordProperty("counts", absl::StrCat(delivered, " ", returned, " ", failed, " ", shared));
}

}  // namespace
}  // namespace systole
