// Tests WorkerPool when the system gives no more threads: the address space has no room for their
// stacks.
#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/concurrency/worker_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

constexpr size_t kStackBytes = size_t{64} << 20;

// From now on there is room for the stacks of about `threads` threads.
void LeaveRoomFor(uint64_t threads) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_setattr_default_np(&attributes);
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t room = pages * 4096 + threads * kStackBytes + kStackBytes / 2;
  const rlimit limit = {.rlim_cur = room, .rlim_max = RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
}

// Exits with 0 if `holds`.
[[noreturn]] void ExitWith(bool holds) { std::_Exit(holds ? 0 : 1); }

class WorkerPoolLimitTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(WorkerPoolLimitTest, CreateFailsIfNoThreadStartsAndTheConstructorThrowsIfSomeFail) {
  const auto create = [] {
    LeaveRoomFor(0);
    const absl::Status status = WorkerPool::Create(3).status();
    ExitWith(absl::IsResourceExhausted(status) &&
             testing::Value(std::string(status.message()), HasSubstr("gives no thread")));
  };
  EXPECT_EXIT(create(), ExitedWithCode(0), "");
  const auto construct = [] {
    LeaveRoomFor(2);
    try {
      WorkerPool pool(100);
    } catch (const std::system_error&) {
      ExitWith(true);
    }
    ExitWith(false);
  };
  EXPECT_EXIT(construct(), ExitedWithCode(0), "");
}

TEST_F(WorkerPoolLimitTest, APoolThatGetsOnlySomeThreadsRunsAllTasks) {
  const auto create = [] {
    LeaveRoomFor(3);
    std::atomic<int> ran = 0;
    absl::StatusOr<std::unique_ptr<WorkerPool>> pool = WorkerPool::Create(100);
    if (!pool.ok() || (*pool)->num_threads() < 1 || (*pool)->num_threads() > 4) ExitWith(false);
    for (int i = 0; i < 20; ++i) (*pool)->Submit([&ran] { ++ran; });
    pool->reset();
    ExitWith(ran == 20);
  };
  EXPECT_EXIT(create(), ExitedWithCode(0), "");
}

TEST_F(WorkerPoolLimitTest, ParallelForRunsEachIndexOnceIfFewOrNoThreadsStart) {
  for (const uint64_t threads : {0, 2}) {
    const auto loop = [threads] {
      LeaveRoomFor(threads);
      std::vector<std::atomic<int>> hits(1000);
      ParallelFor(100, 1000, [&hits](int64_t i) { ++hits[static_cast<size_t>(i)]; });
      bool each_once = true;
      for (const std::atomic<int>& hit : hits) each_once = each_once && hit == 1;
      ExitWith(each_once);
    };
    EXPECT_EXIT(loop(), ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace systole
