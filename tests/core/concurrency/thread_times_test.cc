#include "core/concurrency/thread_times.h"

#include <optional>

#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "gtest/gtest.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

TEST(ThreadTimesTest, RunningTimeGrowsWhileAThreadRuns) {
  const std::optional<ThreadTimes> before = TimesOf(OwnThreadId());
  ASSERT_TRUE(before.has_value()) << "this kernel does not count the times of threads";
  EXPECT_TRUE(WaitUntil([&] { return TimesOf(OwnThreadId())->running > before->running; }));
}

TEST(ThreadTimesTest, RunningAndQueuedTimesStopGrowingWhileAThreadWaits) {
  Mutex mu;
  CondVar changed;
  ThreadId thread = 0;
  bool over = false;
  WorkerPool pool(1);
  pool.Submit([&] {
    MutexLock lock(mu);
    thread = OwnThreadId();
    while (!over) changed.Wait(mu);
  });
  const auto id = [&] {
    MutexLock lock(mu);
    return thread;
  };
  ASSERT_TRUE(WaitUntil([&] { return id() != 0; }));
  // The thread soon goes to sleep, and its times stop changing.
  std::optional<ThreadTimes> last = TimesOf(id());
  ASSERT_TRUE(last.has_value());
  int equal_in_a_row = 0;
  EXPECT_TRUE(WaitUntil([&] {
    const std::optional<ThreadTimes> times = TimesOf(id());
    const bool equal = times->running == last->running && times->queued == last->queued;
    equal_in_a_row = equal ? equal_in_a_row + 1 : 0;
    last = times;
    return equal_in_a_row == 100;
  }));
  MutexLock lock(mu);
  over = true;
  changed.Signal();
}

TEST(ThreadTimesTest, AnUnknownThreadIdHasNoTimes) { EXPECT_FALSE(TimesOf(-1).has_value()); }

}  // namespace
}  // namespace systole
