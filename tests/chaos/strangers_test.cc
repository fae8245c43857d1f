// Strangers without a credential who flood a server from several machines at once. A feed that runs
// keeps its bytes, and the server its memory.
#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/chaos/chaos_feed.h"
#include "tests/sanitizers.h"
#include "tests/system/stranger.h"

namespace systole {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kBudget = 64 * kMiB;
constexpr int64_t kBeside = (kAddressSanitizer ? 320 : 64) * kMiB;
constexpr int kMachines = 4;

class StrangersTest : public ChaosTest {
 protected:
  void SetUp() override {
    ChaosTest::SetUp();
    AddServer({"--memory-budget", absl::StrCat(kBudget)});
  }
  // Each machine floods in every way, one after the other, each with a connection of its own.
  static void FloodAll(const std::string& address, int rounds) {
    std::vector<std::thread> machines;
    for (int machine = 0; machine < kMachines; ++machine) {
      machines.emplace_back([&address, rounds, machine] {
        std::vector<FloodCase> floods = AllFloods();
        std::rotate(floods.begin(), floods.begin() + machine, floods.end());
        for (int round = 0; round < rounds; ++round) {
          for (const FloodCase& flood : floods) {
            SendFlood(address, flood.flood, flood.bytes, /*host=*/2 + machine);
          }
        }
      });
    }
    for (std::thread& machine : machines) machine.join();
  }
};

TEST_F(StrangersTest, FloodsLeaveFeedsTheirBytesAndTheServerItsMemory) {
  const int64_t idle_bytes = server(0).MemoryBytes("VmRSS");
  const int steps = Times(200, 2000);
  const auto feed = StartFeed(steps);
  FloodAll(address(0), Times(1, 10));
  ExpectUndisturbed(*feed, steps);
  // One that comes only now.
  const auto late = StartFeed(20, {"--connect-timeout", "60"});
  ExpectUndisturbed(*late, 20);
  const int64_t most_bytes = server(0).MemoryBytes("VmHWM");
  GTEST_LOG_(INFO) << (most_bytes - idle_bytes) / kMiB << " MiB beyond the idle server";
  EXPECT_LE(most_bytes - idle_bytes, kBudget + kBeside);
  EXPECT_THAT(server(0).err(), testing::HasSubstr("dropped a connection of 127.0.0."));
}

}  // namespace
}  // namespace systole
