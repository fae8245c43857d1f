// Allowed requests that cost a server nearly as much as one request may cost. Other feeds still get
// the right bytes and their share of the threads. The server's threads stop working on a cancelled
// feed, and the server ends after SIGTERM.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/chaos/chaos_feed.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

constexpr char kEndless[] = "100000000";

class CostlyTest : public ChaosTest {
 protected:
  // Starts a server with two identities: "trainer", whose feeds are compared with the undisturbed
  // run, and "costly".
  void SetUp() override {
    ChaosTest::SetUp();
    std::string identities;
    for (const std::string name : {"trainer", "costly"}) {
      const Finished drawn = RunSystole({"token", "--name", name, "--file", folder_ / "tokens"});
      ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
      std::filesystem::permissions(folder_.Write(name + ".token", drawn.out),
                                   std::filesystem::perms::owner_read);
      absl::StrAppend(&identities, "identities { name: '", name, "' token_names: '", name,
                      "' may { read: 'raw' status: true } }\n");
    }
    const std::string config = folder_.Write(
        "config.textproto",
        absl::StrCat("access { token_file: '", folder_ / "tokens", "'\n", identities, "}\n"));
    AddServer({"--config", config, "--drain-timeout", "2"});
  }

  std::string TokenOf(const std::string& name) const { return folder_ / (name + ".token"); }

  // An example takes half a second of a thread. Its transforms make 60 million values in all, which
  // is nearly the limit for transforms outside of the fused pass. A step is one slice of 64 such
  // examples.
  static std::string CostlySpec(int seed) {
    std::string spec = absl::StrCat(
        "dataset: 'raw' global_batch: 64 num_cores: 1 seed: ", seed,
        " outputs { name: 'x' feature: 'record' shape: [64, 512, 1] dtype: FLOAT32 "
        "transforms { decode_raw {} } transforms { resize { height: 2000 width: 2000 } } ");
    for (int i = 0; i < 14; ++i) {
      spec += "transforms { gamma { gamma_min: 0.9 gamma_max: 1.1 } } ";
    }
    return spec + "transforms { crop { height: 2 width: 2 } } }";
  }

  std::unique_ptr<Process> StartCostly(int seed) {
    const std::string spec =
        folder_.Write(absl::StrCat("costly-", seed, ".textproto"), CostlySpec(seed));
    return std::make_unique<Process>(
        std::vector<std::string>{SystoleProgram(), "feed", "--server", Servers(), "--spec", spec,
                                 "--steps", kEndless, "--token-file", TokenOf("costly")});
  }

  // How many streams the server has opened so far. The lines of the server's log cannot be counted
  // for this, because the log leaves out lines when there are many.
  double StreamsOpened() {
    const Finished asked =
        RunSystole({"status", "--server", Servers(), "--token-file", TokenOf("trainer"), "--json"});
    EXPECT_EQ(asked.exit_code, 0) << asked.err;
    return JsonNumber(asked.out, "streams_opened");
  }
};

TEST_F(CostlyTest, CostlyFeedsNeitherDisturbAnotherPeerNorPreventServerShutdown) {
  const int feeds = Times(4, 64);
  std::vector<std::unique_ptr<Process>> costly;
  for (int i = 0; i < feeds; ++i) costly.push_back(StartCostly(i));
  ASSERT_TRUE(WaitUntil([&] { return StreamsOpened() >= feeds; }));
  // The server has one thread. All costly feeds belong to one peer, and together get half of the
  // thread's time.
  const int steps = Times(20, 200);
  const auto feed = StartFeed(steps, {"--token-file", TokenOf("trainer")});
  ExpectUndisturbed(*feed, steps);
  // The server is stopped while it still serves the costly feeds.
  server(0).Signal(SIGTERM);
  EXPECT_EQ(server(0).Wait().exit_code, 0);
  // The costly feeds do not fail: they look for another server.
  for (const auto& process : costly) EXPECT_TRUE(process->IsRunning());
  Restart(0);
}

TEST_F(CostlyTest, ACancelledFeedReleasesTheServersThread) {
  auto costly = StartCostly(1);
  ASSERT_TRUE(WaitUntil([&] { return StreamsOpened() >= 1; }));
  costly->Signal(SIGKILL);
  costly->Wait();
  ASSERT_TRUE(WaitUntil([&] { return absl::StrContains(server(0).err(), " ended"); }));
  const auto feed = StartFeed(10, {"--token-file", TokenOf("trainer")});
  ExpectUndisturbed(*feed, 10);
}

TEST_F(CostlyTest, ASpecAboveTheCostLimitIsRefusedAndItsCostliestPartIsNamed) {
  const std::string spec = folder_.Write(
      "group.textproto", absl::StrCat(CostlySpec(1), " mix { group: 64 images: 'x' mixup {} }"));
  const Finished refused = RunSystole({"feed", "--server", Servers(), "--spec", spec,
                                       "--token-file", TokenOf("costly"), "--steps", "1"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("mix has a group of 64 examples"));
  EXPECT_THAT(refused.err, HasSubstr("the largest part is output 'x'"));
}

}  // namespace
}  // namespace systole
