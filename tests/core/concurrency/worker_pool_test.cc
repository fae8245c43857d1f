#include "core/concurrency/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/concurrency/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(WorkerPoolTest, EveryTaskRunsBeforeTheDestructorReturns) {
  std::atomic<int> ran = 0;
  {
    WorkerPool pool(/*threads=*/3);
    EXPECT_EQ(pool.num_threads(), 3);
    for (int i = 0; i < 1000; ++i) pool.Submit([&ran] { ++ran; });
  }
  EXPECT_EQ(ran, 1000);
}

// A first task holds the thread up while the others are submitted.
TEST(WorkerPoolTest, TheTasksOfOneThreadRunInTheOrderTheyCome) {
  std::vector<int> order;
  Mutex gate;
  gate.Lock();
  {
    WorkerPool pool(1);
    pool.Submit([&gate] { MutexLock lock(gate); });
    for (int i = 0; i < 4; ++i) pool.Submit([&order, i] { order.push_back(i); });
    gate.Unlock();
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));
}

// Each task holds its thread up until it is released. So the next task begins only after a release.
TEST(WorkerPoolTest, TheTasksOfSeveralThreadsBeginInTheOrderTheyCome) {
  constexpr size_t kThreads = 3;
  constexpr size_t kTasks = 20;
  std::atomic<bool> begun[kTasks] = {};
  std::atomic<bool> released[kTasks] = {};
  WorkerPool pool(kThreads);
  for (size_t i = 0; i < kTasks; ++i) {
    pool.Submit([&, i] {
      begun[i] = true;
      EXPECT_TRUE(WaitUntil([&] { return released[i].load(); }));
    });
  }
  std::vector<size_t> held;  // The tasks that hold up the threads now.
  for (size_t next = 0; next < kTasks; ++next) {
    if (next >= kThreads) {
      const auto ends = held.begin() + static_cast<ptrdiff_t>(next % kThreads);
      released[*ends] = true;
      held.erase(ends);
    }
    held.push_back(next);
    EXPECT_TRUE(WaitUntil([&] {
      return static_cast<size_t>(std::count(begun, begun + kTasks, true)) >=
             std::max(next + 1, kThreads);
    }));
    EXPECT_TRUE(begun[next]) << next;
    if (HasFailure()) break;
  }
  for (std::atomic<bool>& release : released) release = true;
}

TEST(WorkerPoolTest, ATaskMaySubmitAnother) {
  std::atomic<int> ran = 0;
  {
    WorkerPool pool(1);
    pool.Submit([&] {
      ++ran;
      pool.Submit([&ran] { ++ran; });
    });
    EXPECT_TRUE(WaitUntil([&ran] { return ran > 0; }));
  }
  EXPECT_EQ(ran, 2);
}

TEST(ParallelForTest, EachIndexRunsOnce) {
  WorkerPool pool(4);
  for (const int64_t n : {0, 1, 2, 3, 1000}) {
    std::vector<int> hits(static_cast<size_t>(n), 0);
    ParallelFor(pool, n, [&hits](int64_t i) { ++hits[static_cast<size_t>(i)]; });
    EXPECT_THAT(hits, Each(1));
  }
}

TEST(ParallelForTest, SeveralCallersShareAPool) {
  WorkerPool pool(2);
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] { ParallelFor(pool, 100, [&sum](int64_t i) { sum += i; }); });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 4950);
}

}  // namespace
}  // namespace systole
