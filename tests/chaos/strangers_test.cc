// Strangers without a credential flood a server from several machines at once. A running feed still
// gets the right bytes, and the server stays within its memory limit.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/chaos/fair_share.h"
#include "tests/system/stranger.h"

namespace systole {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kBudget = 64 * kMiB;
constexpr int64_t kBeside = 64 * kMiB;
constexpr int kMachines = 4;

// Each machine runs all kinds of floods, one after the other, each over a new connection.
class FloodingCrowd {
 public:
  // Runs `rounds` rounds, or fewer if the crowd is destroyed earlier. A flood that has begun is
  // always finished.
  FloodingCrowd(const std::string& address, int rounds) {
    for (int machine = 0; machine < kMachines; ++machine) {
      machines_.emplace_back([this, address, rounds, machine] {
        for (int round = 0; round < rounds; ++round) {
          for (size_t i = 0; i < AllRequestFloods().size(); ++i) {
            const RequestFloodCase& flood =
                AllRequestFloods()[(i + static_cast<size_t>(machine)) % AllRequestFloods().size()];
            if (stopping_) return;
            SendFlood(address, flood.flood, flood.bytes, /*host=*/2 + machine);
          }
        }
      });
    }
  }
  ~FloodingCrowd() {
    stopping_ = true;
    Wait();
  }
  FloodingCrowd(const FloodingCrowd&) = delete;
  FloodingCrowd& operator=(const FloodingCrowd&) = delete;

  // Waits until all rounds are over.
  void Wait() {
    for (std::thread& machine : machines_) machine.join();
    machines_.clear();
  }

 private:
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> machines_;
};

class StrangersTest : public FairShareTest {
 protected:
  void SetUp() override {
    FairShareTest::SetUp();
    AddServer({"--memory-budget", absl::StrCat(kBudget)});
    idle_bytes_ = server(0).MemoryBytes("VmRSS");
  }
  void ExpectMemoryKept() {
    const int64_t most_bytes = server(0).MemoryBytes("VmHWM");
    GTEST_LOG_(INFO) << (most_bytes - idle_bytes_) / kMiB << " MiB beyond the idle server";
    EXPECT_LE(most_bytes - idle_bytes_, kBudget + kBeside);
    EXPECT_THAT(server(0).err(), testing::HasSubstr("dropped a connection of 127.0.0."));
  }

 private:
  int64_t idle_bytes_ = 0;
};

TEST_F(StrangersTest, RequestFloodsNeitherDisturbFeedsNorExceedTheMemoryLimit) {
  const int steps = Times(200, 2000);
  const auto feed = StartFeed(steps);
  FloodingCrowd(address(0), Times(1, 10)).Wait();
  ExpectUndisturbed(*feed, steps);
  // A feed that starts only after the floods is served too.
  const auto late = StartFeed(20, {"--connect-timeout", "300"});
  ExpectUndisturbed(*late, 20);
  ExpectMemoryKept();
}

TEST_F(StrangersTest, FloodsLeaveFeedsTheirShare) {
  ExpectFairShare(/*honest=*/kMachines, [&] {
    return std::make_unique<FloodingCrowd>(address(0), /*rounds=*/1'000'000);
  });
  ExpectMemoryKept();
}

}  // namespace
}  // namespace systole
