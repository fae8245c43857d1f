#include "server/open_files.h"

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

TEST(CheckOpenFilesTest, TheNeedIsOnePerShardTwoPerConnectionAndAReserve) {
  const OpenFilesNeed need = {.shards = 1000, .connections = 256};
  EXPECT_THAT(CheckOpenFiles(need, 1000 + 512 + 64), IsOk());
  EXPECT_THAT(CheckOpenFiles(need, 1000 + 512 + 63),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("may open 1575 files and could need 1576: 1000 shards, 512 for "
                                 "256 connections, 0 slots of shared memory and 64 of its own")));
}

TEST(CheckOpenFilesTest, WithSharedMemorySlotsTakeAQuarterAndConnectionsThreeEach) {
  const OpenFilesNeed need = {.shards = 2, .connections = 100, .shares = true};
  // The need is 2 + 3 * 100 + 256 + 64 = 622. Slots get a quarter of the limit, and 829 - 829 / 4
  // is 622.
  EXPECT_THAT(CheckOpenFiles(need, 829), IsOk());
  EXPECT_THAT(CheckOpenFiles(need, 828), StatusIs(absl::StatusCode::kResourceExhausted,
                                                  HasSubstr("828 files and could need 829: ")));
}

TEST(CheckOpenFilesTest, TheLimitThatTheErrorProposesIsEnough) {
  const OpenFilesNeed need = {.shards = 100'000, .connections = 256, .shares = true};
  EXPECT_THAT(CheckOpenFiles(need, 4096),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("`ulimit -Hn`, to 104160")));
  EXPECT_THAT(CheckOpenFiles(need, 104'160), IsOk());
}

TEST(MaxConnectionsForTest, TheComputedMaximumFitsTheOpenFileLimit) {
  for (const bool shares : {false, true}) {
    OpenFilesNeed need = {.shards = 10, .shares = shares};
    for (const uint64_t limit : {1024, 4096, 65'536}) {
      need.connections = MaxConnectionsFor(need, limit);
      EXPECT_GT(need.connections, 100);
      EXPECT_THAT(CheckOpenFiles(need, limit), IsOk()) << limit << " " << shares;
    }
  }
}

TEST(MaxConnectionsForTest, TheMaximumIsBetween8And4096) {
  EXPECT_EQ(MaxConnectionsFor({.shards = 100'000}, 1024), 8);
  EXPECT_EQ(MaxConnectionsFor({}, 0), 8);
  EXPECT_EQ(MaxConnectionsFor({.shares = true}, std::numeric_limits<uint64_t>::max()), 4096);
}

TEST(CheckOpenFilesTest, AnUnlimitedNumberOfOpenFilesIsEnough) {
  EXPECT_THAT(CheckOpenFiles({.shards = 1 << 20, .connections = 256, .shares = true},
                             std::numeric_limits<uint64_t>::max()),  // RLIM_INFINITY.
              IsOk());
}

}  // namespace
}  // namespace systole
