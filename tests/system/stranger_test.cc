// Clients without a credential flood a server in every way that HTTP/2 has. Even before the
// server checks any credential, it must bound the memory and the time that such clients cost.
#include "tests/system/stranger.h"

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kBudget = 32 * kMiB;
constexpr int64_t kBeside = (kAddressSanitizer ? 320 : 64) * kMiB;
constexpr int kConnections = 4;

class StrangerTest : public testing::TestWithParam<RequestFloodCase> {};

TEST_P(StrangerTest, AFloodedServerKeepsItsMemoryBoundAndServesOthers) {
  const TempFolder folder;
  const std::string shard = folder.Write("raw.tfrecord", RawShard(0, 64, 784));
  const std::string spec = folder.Write("spec.textproto", RawSpec(784, 1));
  absl::StatusOr<std::unique_ptr<ServerProcess>> server = ServerProcess::Start(
      {"--dataset", absl::StrCat("raw=", shard), "--memory-budget", absl::StrCat(kBudget)});
  ASSERT_THAT(server, IsOk());
  Process& process = (*server)->process();
  const auto feed = [&] {
    const Finished finished = RunSystole({"feed", "--server", (*server)->address(), "--spec", spec,
                                          "--digest", "--connect-timeout", "300"});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return SortedByStepAndCore(finished.out);
  };
  const int64_t idle_bytes = process.MemoryBytes("VmRSS");
  const std::string undisturbed = feed();
  for (int i = 0; i < kConnections; ++i) {
    SendFlood((*server)->address(), GetParam().flood, GetParam().bytes, /*host=*/2 + i);
  }
  EXPECT_EQ(feed(), undisturbed);
  const int64_t most_bytes = process.MemoryBytes("VmHWM");
  RecordProperty("mib_beyond_idle", absl::StrCat((most_bytes - idle_bytes) / kMiB));
  EXPECT_LE(most_bytes - idle_bytes, kBudget + kBeside);
  EXPECT_THAT(process.err(), testing::HasSubstr("dropped a connection of 127.0.0."));
}

INSTANTIATE_TEST_SUITE_P(Floods, StrangerTest, testing::ValuesIn(AllRequestFloods()),
                         [](const testing::TestParamInfo<RequestFloodCase>& info) {
                           return info.param.name;
                         });

}  // namespace
}  // namespace systole
