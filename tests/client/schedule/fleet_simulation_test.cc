// A thousand servers and four thousand feeds in virtual time.
#include "tests/client/schedule/fleet_simulation.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "tests/sanitizers.h"

namespace systole {
namespace {

FleetOptions Fleet(uint64_t seed) {
  if (kSanitized) return {.seed = seed, .servers = 100, .jobs = 20, .hosts = 20};
  return {.seed = seed};
}

// The busiest server may be this much busier than the average.
constexpr double kMostToAverage = 1.3;

// Lets a minute pass in which something happens to a server every few seconds.
void RunThroughTrouble(FleetSimulation& fleet) {
  for (int second = 0; second < 60; ++second) {
    fleet.Run(absl::Seconds(1));
    const int server = static_cast<int>(fleet.RandomServer());
    if (second % 10 == 0) fleet.Kill(server, absl::Seconds(10));
    if (second % 20 == 1) fleet.SetSlow(server, 2);
    if (second % 20 == 5) fleet.AddServer();
    if (second % 20 == 7) fleet.RemoveServer(server);
  }
}

TEST(FleetSimulationTest, FeedsThatKnowNothingOfEachOtherShareTheServersEvenly) {
  FleetSimulation fleet(Fleet(/*seed=*/1));
  fleet.Run(absl::Minutes(1));  // All feeds begin at once, when no server is busy.
  fleet.BusiestToAverage();
  fleet.Run(absl::Minutes(1));
  EXPECT_LE(fleet.BusiestToAverage(), kMostToAverage);
  EXPECT_GT(fleet.average_busy(), 0.4);
  // If all servers were fully busy, their loads would be equal, whatever the feeds chose.
  EXPECT_LT(fleet.average_busy(), 0.7);
  fleet.TakeLongestWait();
  for (int minute = 0; minute < 2; ++minute) {
    RunThroughTrouble(fleet);
    EXPECT_LE(fleet.BusiestToAverage(), kMostToAverage);
  }
  EXPECT_LE(fleet.most_servers(), 16u);
  EXPECT_GT(fleet.steps(), 0);
  ASSERT_EQ(fleet.wrong(), "");
}

TEST(FleetSimulationTest, ARollingRestartCostsAtMostAStepAndAReconnectThenLoadsEvenOut) {
  FleetSimulation fleet(Fleet(/*seed=*/2));
  fleet.Run(absl::Minutes(2));
  fleet.TakeLongestWait();
  fleet.TakeLongestStep();
  const int at_a_time = fleet.num_servers() / 50;
  for (int server = 0; server < fleet.num_servers(); ++server) {
    fleet.Restart(server, /*down=*/absl::Seconds(5));
    if (server % at_a_time == 0) fleet.Run(absl::Seconds(2));
  }
  // No trainer waited longer than for one step and one reconnect.
  EXPECT_LE(fleet.TakeLongestWait(), fleet.TakeLongestStep() + 2 * FleetSimulation::kRoundTrip);
  // The servers that restarted last have no clients at first. In the next minutes clients
  // find them.
  fleet.Run(absl::Minutes(3));
  fleet.BusiestToAverage();
  fleet.Run(absl::Minutes(1));
  fleet.BusiestToAverage();
  fleet.Run(absl::Minutes(1));
  EXPECT_LE(fleet.BusiestToAverage(), kMostToAverage);
  EXPECT_LE(fleet.most_servers(), 16u);
  ASSERT_EQ(fleet.wrong(), "");
}

// This test shows that the tests above do not pass for every way to choose servers.
TEST(FleetSimulationTest, IfServersDoNotReportTheirLoadTheLoadIsUneven) {
  FleetSimulation fleet({.seed = 3, .servers = 100, .jobs = 20, .hosts = 20, .tells_load = false});
  fleet.Run(absl::Minutes(1));
  fleet.BusiestToAverage();
  fleet.Run(absl::Minutes(1));
  EXPECT_GT(fleet.BusiestToAverage(), 1.5);
  ASSERT_EQ(fleet.wrong(), "");
}

TEST(FleetSimulationTest, AFastServerGetsMoreSteps) {
  FleetSimulation fleet({.servers = 2,
                         .jobs = 1,
                         .hosts = 1,
                         .window = 16,
                         .train = absl::Milliseconds(1),
                         .step = absl::Milliseconds(100)});
  fleet.SetSlow(0, 3);
  fleet.Run(absl::Minutes(1));
  const int64_t before = fleet.steps();
  fleet.Run(absl::Minutes(1));
  // The fast server can make 600 steps a minute, and the slow one 200. If each had every second
  // step, both together would make only 400.
  EXPECT_GT(fleet.steps() - before, 700);
  ASSERT_EQ(fleet.wrong(), "");
}

TEST(FleetSimulationTest, ATrainerThatWaitsGetsMoreServersAndOneThatDoesNotKeepsTwo) {
  for (const bool waits : {true, false}) {
    FleetSimulation fleet({.servers = 40,
                           .jobs = 1,
                           .hosts = 1,
                           .window = 40,
                           .train = waits ? absl::Milliseconds(1) : absl::Milliseconds(200),
                           .step = absl::Milliseconds(100)});
    fleet.Run(absl::Minutes(2));
    const int64_t before = fleet.steps();
    fleet.Run(absl::Minutes(1));
    EXPECT_EQ(fleet.ServersOf(0), waits ? 16 : 2);
    if (waits) {
      EXPECT_GT(fleet.steps() - before, 14 * 600);
    }
    ASSERT_EQ(fleet.wrong(), "");
  }
}

}  // namespace
}  // namespace systole
