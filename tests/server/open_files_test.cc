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

TEST(CheckOpenFilesTest, CountsShardsStreamsAndItsOwn) {
  const OpenFilesNeed need = {.shards = 1000, .streams = 256};
  EXPECT_THAT(CheckOpenFiles(need, 1000 + 256 + 64), IsOk());
  EXPECT_THAT(CheckOpenFiles(need, 1000 + 256 + 63),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("may open 1319 files and could need 1320: 1000 shards, 256 "
                                 "connections, 0 slots of shared memory and 64 of its own")));
}

TEST(CheckOpenFilesTest, SharingTakesAQuarterInSlotsAndAConnectionMoreForEachStream) {
  const OpenFilesNeed need = {.shards = 2, .streams = 100, .shares = true};
  // 2 + 2 * 100 + 256 + 64 = 522, for which 695 leaves room beside its quarter.
  EXPECT_THAT(CheckOpenFiles(need, 695), IsOk());
  EXPECT_THAT(CheckOpenFiles(need, 694), StatusIs(absl::StatusCode::kResourceExhausted,
                                                  HasSubstr("694 files and could need 695: ")));
}

TEST(CheckOpenFilesTest, TheRemedyIsEnough) {
  const OpenFilesNeed need = {.shards = 100'000, .streams = 256, .shares = true};
  EXPECT_THAT(CheckOpenFiles(need, 4096),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("`ulimit -Hn`, to 103904")));
  EXPECT_THAT(CheckOpenFiles(need, 103'904), IsOk());
}

TEST(CheckOpenFilesTest, NoLimitIsEnough) {
  EXPECT_THAT(CheckOpenFiles({.shards = 1 << 20, .streams = 256, .shares = true},
                             std::numeric_limits<uint64_t>::max()),  // RLIM_INFINITY.
              IsOk());
}

}  // namespace
}  // namespace systole
