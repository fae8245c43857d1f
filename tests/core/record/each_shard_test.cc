#include "core/record/each_shard.h"

#include <atomic>
#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/concurrency/mutex.h"
#include "core/interrupt/interrupt.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;

TEST(ForEachShardTest, EachShardIsWorkedOnOnce) {
  for (const int at_once : {1, 3, 16}) {
    for (const int64_t count : {0, 1, 2, 100}) {
      Mutex mu;
      std::multiset<int64_t> seen;
      EXPECT_THAT(ForEachShard(count, at_once,
                               [&](int64_t i) {
                                 MutexLock lock(mu);
                                 seen.insert(i);
                                 return absl::OkStatus();
                               }),
                  IsOk());
      EXPECT_EQ(static_cast<int64_t>(seen.size()), count);
      for (int64_t i = 0; i < count; ++i) EXPECT_EQ(seen.count(i), 1u) << i;
    }
  }
}

// Shard 7 fails at once, and shard 3 fails later.
TEST(ForEachShardTest, ReturnsTheErrorOfTheLowestShardAndNotTheEarliestError) {
  for (int round = 0; round < 20; ++round) {
    Mutex mu;
    CondVar changed;
    bool seventh_failed = false;
    const absl::Status status = ForEachShard(100, 8, [&](int64_t i) -> absl::Status {
      MutexLock lock(mu);
      if (i == 7) {
        seventh_failed = true;
        changed.SignalAll();
      }
      while (i == 3 && !seventh_failed) changed.Wait(mu);
      if (i != 3 && i < 7) return absl::OkStatus();
      return absl::DataLossError(absl::StrCat("shard ", i));
    });
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, Eq("shard 3")));
  }
}

TEST(ForEachShardTest, AfterAnErrorNoFurtherShardIsBegun) {
  for (const int at_once : {1, 4}) {
    std::atomic<int64_t> begun = 0;
    const absl::Status status = ForEachShard(1000, at_once, [&](int64_t) -> absl::Status {
      begun.fetch_add(1);
      return absl::UnavailableError("no server");
    });
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, Eq("no server")));
    EXPECT_LE(begun.load(), at_once);
  }
}

TEST(ForEachShardTest, AllThreadsHeedTheInterruptFlagOfTheCaller) {
  InterruptFlag unwanted;
  const InterruptScope scope(unwanted);
  std::atomic<int64_t> begun = 0;
  std::atomic<int64_t> asked_to_stop = 0;
  const absl::Status status = ForEachShard(1000, 4, [&](int64_t) -> absl::Status {
    begun.fetch_add(1);
    unwanted.Raise();
    if (InterruptRequested()) asked_to_stop.fetch_add(1);
    return absl::OkStatus();
  });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, HasSubstr("no longer needed")));
  EXPECT_LE(begun.load(), 4);
  EXPECT_EQ(asked_to_stop.load(), begun.load());
}

}  // namespace
}  // namespace systole
