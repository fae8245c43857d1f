#include "core/engine/worker_watch.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kPeriod = absl::Milliseconds(100);

// A machine whose clock and whose thread times are set by the test.
class Machine {
 public:
  explicit Machine(int threads, int max_threads)
      : watch({.threads = threads, .max_threads = max_threads, .period = kPeriod}),
        times(static_cast<size_t>(max_threads), ThreadTimes{}) {}

  void BeginAll() {
    for (int i = 0; i < static_cast<int>(times.size()); ++i) watch.Begin(i, now);
  }
  // Lets a period pass. `ran[i]` is the share of the period for which thread i ran, and `queued`
  // the share for which each thread was queued.
  std::vector<int> Pass(const std::vector<double>& ran, double queued = 0) {
    now += kPeriod;
    for (size_t i = 0; i < ran.size(); ++i) {
      times[i]->running += ran[i] * kPeriod;
      times[i]->queued += queued * kPeriod;
    }
    return watch.Look(now, times);
  }

  WorkerWatch watch;
  std::vector<std::optional<ThreadTimes>> times;
  absl::Duration now = absl::Seconds(1000);
};

TEST(WorkerWatchTest, BusyThreadsKeepTheLimitAtTheConfiguredNumber) {
  Machine machine(2, 8);
  machine.watch.Begin(0, machine.now);
  EXPECT_TRUE(machine.watch.MayBegin());
  machine.watch.Begin(1, machine.now);
  EXPECT_FALSE(machine.watch.MayBegin());
  for (int i = 0; i < 50; ++i) machine.Pass({0.98, 0.99});
  EXPECT_EQ(machine.watch.limit(), 2);
  machine.watch.End(0, machine.now);
  EXPECT_TRUE(machine.watch.MayBegin());
}

TEST(WorkerWatchTest, MayBeginCountsThreadsThatAreAboutToBegin) {
  Machine machine(2, 8);
  EXPECT_TRUE(machine.watch.MayBegin(1));
  EXPECT_FALSE(machine.watch.MayBegin(2));
  machine.watch.Begin(0, machine.now);
  EXPECT_FALSE(machine.watch.MayBegin(1));
}

TEST(WorkerWatchTest, AGapInAThreadsTimesDoesNotMakeTheThreadStuck) {
  Machine machine(1, 1);
  machine.BeginAll();
  machine.Pass({1});
  const std::optional<ThreadTimes> times = std::exchange(machine.times[0], std::nullopt);
  for (int i = 0; i < 1000; ++i) machine.Pass({});
  machine.times[0] = times;
  // The thread's read takes half a second.
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(machine.Pass({0}), IsEmpty());
    EXPECT_FALSE(machine.watch.IsStuck(0));
  }
  EXPECT_EQ(machine.watch.limit(), 1);
}

TEST(WorkerWatchTest, TheLimitRisesWhileThreadsWaitForStorageAndFallsAfterwards) {
  Machine machine(2, 16);
  machine.BeginAll();
  // Each thread works for a quarter of its time, so eight of them keep two processors busy.
  for (int i = 0; i < 50; ++i) machine.Pass(std::vector<double>(16, 0.25));
  EXPECT_EQ(machine.watch.limit(), 8);
  // The storage is fast again.
  for (int i = 0; i < 50; ++i) machine.Pass(std::vector<double>(16, 1));
  EXPECT_EQ(machine.watch.limit(), 2);
}

TEST(WorkerWatchTest, TheLimitNeverExceedsMaxThreads) {
  Machine machine(2, 5);
  machine.BeginAll();
  for (int i = 0; i < 50; ++i) machine.Pass(std::vector<double>(5, 0.001));
  EXPECT_EQ(machine.watch.limit(), 5);
}

TEST(WorkerWatchTest, QueueingForAProcessorDoesNotRaiseTheLimit) {
  Machine machine(2, 8);
  machine.BeginAll();
  for (int i = 0; i < 50; ++i) machine.Pass(std::vector<double>(8, 0.25), /*queued=*/0.75);
  EXPECT_EQ(machine.watch.limit(), 2);
}

TEST(WorkerWatchTest, OtherTasksMayBeginBesideOverdueTasksUpToTheLimit) {
  Machine machine(2, 4);
  machine.watch.Begin(0, machine.now);
  machine.watch.Begin(1, machine.now);
  EXPECT_FALSE(machine.watch.MayBeginBeside());
  machine.Pass({1, 1});
  EXPECT_TRUE(machine.watch.IsOverdue(0));
  EXPECT_FALSE(machine.watch.MayBegin());
  EXPECT_TRUE(machine.watch.MayBeginBeside());
  // At most two tasks may begin beside the overdue task, because the pool has two threads at first.
  machine.watch.Begin(2, machine.now);
  EXPECT_TRUE(machine.watch.MayBeginBeside());
  machine.watch.Begin(3, machine.now);
  EXPECT_FALSE(machine.watch.MayBeginBeside());
  for (const int worker : {2, 3}) machine.watch.End(worker, machine.now);
  machine.watch.End(0, machine.now);
  EXPECT_FALSE(machine.watch.IsOverdue(0));
  machine.watch.End(1, machine.now);
  EXPECT_FALSE(machine.watch.MayBeginBeside());
  machine.watch.Begin(0, machine.now);
  EXPECT_FALSE(machine.watch.IsOverdue(0));
}

TEST(WorkerWatchTest, AThreadThatIsStuckIsNotOverdue) {
  Machine machine(1, 2);
  machine.watch.Begin(0, machine.now);
  for (int i = 0; i < 20; ++i) machine.Pass({0, 0});
  EXPECT_TRUE(machine.watch.IsStuck(0));
  EXPECT_FALSE(machine.watch.IsOverdue(0));
  EXPECT_TRUE(machine.watch.MayBegin());
  machine.watch.Begin(1, machine.now);
  EXPECT_FALSE(machine.watch.MayBeginBeside());
}

TEST(WorkerWatchTest, IdleTimeIsNotWaiting) {
  Machine machine(1, 8);
  for (int i = 0; i < 50; ++i) {
    // The thread works for a tenth of the period, without waiting. It has a new task when the watch
    // looks next.
    machine.watch.Begin(0, machine.now);
    machine.watch.End(0, machine.now + 0.1 * kPeriod);
    machine.watch.Begin(0, machine.now + kPeriod);
    machine.Pass({0.1});
    machine.watch.End(0, machine.now);
  }
  EXPECT_EQ(machine.watch.limit(), 1);
}

TEST(WorkerWatchTest, AThreadThatDoesNotRunForASecondIsStuckAndReplaced) {
  Machine machine(1, 4);
  machine.watch.Begin(0, machine.now);
  for (int i = 0; i < 9; ++i) machine.Pass({0});
  EXPECT_FALSE(machine.watch.IsStuck(0));
  machine.Pass({0});
  EXPECT_TRUE(machine.watch.IsStuck(0));
  EXPECT_EQ(machine.watch.stuck(), 1);
  EXPECT_TRUE(machine.watch.MayBegin());
  machine.watch.Begin(1, machine.now);
  // A waiting thread would raise the limit. The stuck thread does not raise it.
  for (int i = 0; i < 50; ++i) machine.Pass({0, 1});
  EXPECT_EQ(machine.watch.limit(), 1);
  EXPECT_FALSE(machine.watch.MayBegin());
  // The stuck thread goes on. Until its task ends, one thread more than the limit has a task.
  machine.Pass({0.5, 1});
  EXPECT_EQ(machine.watch.stuck(), 0);
  machine.watch.End(0, machine.now);
  EXPECT_FALSE(machine.watch.MayBegin());
  machine.watch.End(1, machine.now);
  EXPECT_TRUE(machine.watch.MayBegin());
  EXPECT_EQ(machine.watch.busy(), 0);
}

TEST(WorkerWatchTest, ATaskTimesOutOnceThoughTheReadHangsOn) {
  Machine machine(1, 4);
  machine.watch.Begin(0, machine.now);
  for (int i = 0; i < 599; ++i) EXPECT_THAT(machine.Pass({0}), IsEmpty()) << i;
  EXPECT_THAT(machine.Pass({0}), ElementsAre(0));
  EXPECT_TRUE(machine.watch.HasTimedOut(0));
  EXPECT_THAT(machine.Pass({0}), IsEmpty());
  machine.watch.End(0, machine.now);
  EXPECT_EQ(machine.watch.stuck(), 0);
  EXPECT_FALSE(machine.watch.HasTimedOut(0));
}

TEST(WorkerWatchTest, ATaskThatTakesLongAndWorksNeverTimesOut) {
  Machine machine(1, 4);
  machine.watch.Begin(0, machine.now);
  // Ten minutes pass. The thread runs for a moment in every ninth period.
  for (int i = 0; i < 6000; ++i) EXPECT_THAT(machine.Pass({i % 9 == 0 ? 1e-4 : 0}), IsEmpty());
  EXPECT_EQ(machine.watch.stuck(), 0);
}

TEST(WorkerWatchTest, TimeInWhichTheProcessWasStoppedMakesNoThreadStuck) {
  Machine machine(1, 4);
  machine.watch.Begin(0, machine.now);
  machine.Pass({1});
  machine.Pass({1});
  machine.now += absl::Hours(1);
  EXPECT_THAT(machine.Pass({0}), IsEmpty());
  EXPECT_FALSE(machine.watch.IsStuck(0));
  EXPECT_EQ(machine.watch.limit(), 1);
}

TEST(WorkerWatchTest, WithoutThreadTimesTheLimitStaysAndNoThreadIsStuck) {
  Machine machine(2, 8);
  machine.BeginAll();
  machine.times.assign(8, std::nullopt);
  for (int i = 0; i < 1000; ++i) {
    machine.now += kPeriod;
    EXPECT_THAT(machine.watch.Look(machine.now, machine.times), IsEmpty());
  }
  EXPECT_EQ(machine.watch.limit(), 2);
  EXPECT_EQ(machine.watch.stuck(), 0);
}

}  // namespace
}  // namespace systole
