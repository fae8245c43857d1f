#include "core/concurrency/worker_pool.h"

#include <atomic>
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

// The pool has one thread. A first task holds it up while the others are submitted.
TEST(WorkerPoolTest, TasksBeginInTheOrderTheyCome) {
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
