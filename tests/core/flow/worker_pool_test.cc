#include "core/flow/worker_pool.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "core/flow/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(WorkerPoolTest, ThereIsAtLeastOneUsableProcessor) { EXPECT_GE(UsableProcessors(), 1); }

TEST(WorkerPoolTest, EveryTaskRunsBeforeTheDestructorReturns) {
  std::atomic<int> ran = 0;
  {
    WorkerPool pool(/*threads=*/3);
    EXPECT_EQ(pool.num_threads(), 3);
    for (int i = 0; i < 1000; ++i) pool.Submit([&ran] { ++ran; });
  }
  EXPECT_EQ(ran, 1000);
}

// One thread, held up by a first task while the others are submitted.
TEST(WorkerPoolTest, LowerPriorityNumbersRunFirstAndEqualOnesInOrder) {
  std::vector<int> order;
  Mutex gate;
  gate.Lock();
  {
    WorkerPool pool(1);
    pool.Submit([&gate] { MutexLock lock(gate); });
    pool.Submit(5, [&order](int) { order.push_back(50); });
    pool.Submit(1, [&order](int) { order.push_back(10); });
    pool.Submit(5, [&order](int) { order.push_back(51); });
    pool.Submit(-1, [&order](int) { order.push_back(-10); });
    gate.Unlock();
  }
  EXPECT_THAT(order, ElementsAre(-10, 10, 50, 51));
}

TEST(WorkerPoolTest, ATaskMaySubmitAnother) {
  std::atomic<int> ran = 0;
  {
    WorkerPool pool(1);
    pool.Submit([&] {
      ++ran;
      pool.Submit([&ran] { ++ran; });
    });
    while (ran == 0) std::this_thread::yield();
  }
  EXPECT_EQ(ran, 2);
}

TEST(WorkerPoolTest, TasksAreToldTheirThread) {
  std::atomic<bool> in_range = true;
  {
    WorkerPool pool(4);
    for (int i = 0; i < 100; ++i) {
      pool.Submit(0, [&in_range](int thread) {
        if (thread < 0 || thread >= 4) in_range = false;
      });
    }
  }
  EXPECT_TRUE(in_range);
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
