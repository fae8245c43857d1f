// Tests a server with more peers than it can serve, and a server whose disk is full. Feeds get the
// right bytes and a fair share of the server's time, and the server stays within its memory limit.
// Afterwards the server serves the same bytes as before.
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/chaos/crowd.h"
#include "tests/chaos/fair_share.h"
#include "tests/chaos/memory_group.h"
#include "tests/loopback_socket.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMiB = int64_t{1} << 20;

class OverloadTest : public FairShareTest {
 protected:
  // Checks that the server still runs and serves the same bytes as before the test.
  void TearDown() override {
    if (num_servers() > 0) {
      EXPECT_TRUE(server(0).IsRunning());
      const auto feed = StartFeed(20);
      ExpectUndisturbed(*feed, 20);
    }
    FairShareTest::TearDown();
  }
};

struct Crowds {
  std::unique_ptr<IdleCrowd> idle;
  std::unique_ptr<ReaderCrowd> readers;
};

TEST_F(OverloadTest, ThePeerLimitProtectsDescriptorsAndFeedsFromIdleCrowds) {
  AddServer({}, {.open_files = 128});
  // 8 honest readers need far fewer than the server's 128 descriptors.
  ExpectFairShare(/*honest=*/8, [&] {
    return std::make_unique<IdleCrowd>(PortOf(address(0)), /*idle=*/1000, /*each_second=*/200);
  });
  // The limit for a peer's connections took effect before the server's descriptors ran out.
  EXPECT_THAT(server(0).err(), HasSubstr("--max-connections-per-peer"));
  EXPECT_THAT(server(0).err(), Not(HasSubstr("Too many open files")));
}

TEST_F(OverloadTest, FeedsAreServedAgainAfterACrowdHasTakenAllDescriptors) {
  AddServer({"--max-connections", "5000", "--max-connections-per-peer", "5000"},
            {.open_files = 128});
  const int rounds = Times(2, 10);
  for (int i = 0; i < rounds; ++i) {
    IdleCrowd(PortOf(address(0)), /*idle=*/1000, /*each_second=*/200);
    const auto feed = StartFeed(5, {"--connect-timeout", "300"});
    ExpectUndisturbed(*feed, 5);
  }
  EXPECT_THAT(server(0).err(), HasSubstr("Too many open files"));
}

TEST_F(OverloadTest, IdleAndSlowPeersLeaveFeedsAFairShareAndMemoryWithinBounds) {
  constexpr int64_t kBudget = 128 * kMiB;
  // Memory beside the budget: gRPC, a plan for each feed, stacks.
  constexpr int64_t kBeside = 64 * kMiB;
  // These options limit the freed memory that AddressSanitizer keeps. By default it keeps 256 MiB,
  // and more for each thread.
  AddServer({"--memory-budget", absl::StrCat(kBudget)},
            {.environment = {"ASAN_OPTIONS=allocator_may_return_null=1:exitcode=99:"
                             "quarantine_size_mb=16:thread_local_quarantine_size_kb=64"}});
  const absl::StatusOr<std::unique_ptr<MemoryGroup>> group = MemoryGroup::Create(512 * kMiB);
  if (group.ok()) {
    EXPECT_THAT((*group)->Add(server(0).pid()), IsOk());
  } else {
    // The test still checks its own bound below, which is stricter.
    GTEST_LOG_(WARNING) << "runs without a memory limit of the kernel: " << group.status();
  }
  const int64_t idle_bytes = server(0).MemoryBytes("VmRSS");
  ExpectFairShare(/*honest=*/128, [&] {
    return Crowds{.idle = std::make_unique<IdleCrowd>(PortOf(address(0)), /*idle=*/1000,
                                                      /*each_second=*/200),
                  .readers = std::make_unique<ReaderCrowd>(address(0), Spec(),
                                                           Readers{.slow = 64, .silent = 64})};
  });
  const int64_t most_bytes = server(0).MemoryBytes("VmHWM");
  RecordProperty("mib_beyond_idle", absl::StrCat((most_bytes - idle_bytes) / kMiB));
  EXPECT_LE(most_bytes - idle_bytes, kBudget + kBeside);
  // The group can be removed only when its process has ended.
  server(0).Signal(SIGTERM);
  EXPECT_EQ(server(0).Wait().exit_code, 0);
  Restart(0);
}

TEST_F(OverloadTest, OnAFullDiskTheServerWritesNoIndexButServesFeeds) {
  const std::string orders = folder_.Write("orders", "full .idx");
  AddServer({}, {.environment = {absl::StrCat("LD_PRELOAD=", SYSTOLE_STORAGE_SHIM),
                                 absl::StrCat("SYSTOLE_SHIM=", orders)}});
  const auto indexes = [&] {
    int count = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
      count += file.path().string().find(".idx") != std::string::npos ? 1 : 0;
    }
    return count;
  };
  EXPECT_THAT(server(0).err(), HasSubstr("No space left on device"));
  EXPECT_EQ(indexes(), 0);  // No incomplete index is left either.
  const int steps = Times(20, 200);
  const auto feed = StartFeed(steps);
  ExpectUndisturbed(*feed, steps);
  // With room on the disk, the next start writes the indexes.
  folder_.Write("orders", "work normally");
  server(0).Signal(SIGTERM);
  EXPECT_EQ(server(0).Wait().exit_code, 0);
  Restart(0);
  EXPECT_GT(indexes(), 0);
}

}  // namespace
}  // namespace systole
