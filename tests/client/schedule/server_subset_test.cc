#include "client/schedule/server_subset.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/schedule/lane_shares.h"
#include "client/schedule/server_demand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using testing::ElementsAre;
using testing::Optional;

absl::Duration At(double seconds) { return absl::Seconds(seconds); }

TEST(ServerSubsetTest, ServersAreTakenInTheOrderOfTheirRanks) {
  ServerSubset subset;
  subset.Add(1, /*rank=*/30);
  subset.Add(2, /*rank=*/10);
  subset.Add(3, /*rank=*/20);
  EXPECT_THAT(subset.Take(At(0)), Optional(2));
  EXPECT_THAT(subset.Take(At(0)), Optional(3));
  EXPECT_TRUE(subset.Remove(1));
  EXPECT_FALSE(subset.Remove(1));
  EXPECT_EQ(subset.Take(At(0)), std::nullopt);
}

TEST(ServerSubsetTest, AServerThatWasGivenBackComesLastForAMinute) {
  ServerSubset subset;
  for (int server = 1; server <= 3; ++server) subset.Add(server, static_cast<uint64_t>(server));
  EXPECT_THAT(subset.Take(At(0)), Optional(1));
  subset.GiveBack(1, At(0));
  EXPECT_THAT(subset.Take(At(59)), Optional(2));
  EXPECT_THAT(subset.Take(At(59)), Optional(3));
  EXPECT_FALSE(subset.CanTake(At(59), /*rested=*/true));
  EXPECT_THAT(subset.Take(At(59)), Optional(1));
  subset.GiveBack(1, At(100));
  subset.GiveBack(3, At(100));
  EXPECT_THAT(subset.Take(At(160)), Optional(1));
}

TEST(ServerSubsetTest, EachServerRanksFirstForASimilarNumberOfClients) {
  std::map<std::string, int> first;
  for (uint64_t client = 0; client < 1000; ++client) {
    std::pair<uint64_t, std::string> best = {~uint64_t{0}, ""};
    for (int i = 0; i < 10; ++i) {
      const std::string name = absl::StrCat("server-", i, ":8470");
      best = std::min(best, std::pair(RankOf(name, client), name));
    }
    ++first[best.second];
  }
  EXPECT_EQ(first.size(), 10u);
  for (const auto& [name, clients] : first) {
    EXPECT_GT(clients, 60) << name;
    EXPECT_LT(clients, 140) << name;
  }
}

TEST(ServerSubsetTest, AServerMuchBusierThanTheOthersHasExcessLoadAndNoRoom) {
  ServerSubset subset;
  for (int server = 0; server < 3; ++server) {
    subset.Add(server, static_cast<uint64_t>(server));
    subset.Take(At(0));
  }
  subset.Told(0, ServerLoad{.busy = 0.8, .free_places = 1}, At(0));
  EXPECT_EQ(subset.ExcessOf(0, At(0)), 0);  // No other server has told its load.
  subset.Told(1, ServerLoad{.busy = 0.4, .free_places = 1}, At(0));
  subset.Told(2, std::nullopt, At(0));
  EXPECT_NEAR(subset.ExcessOf(0, At(1)), 0.5, 1e-9);
  EXPECT_FALSE(subset.HasRoom(0, At(1)));
  EXPECT_EQ(subset.ExcessOf(1, At(1)), 0);
  EXPECT_TRUE(subset.HasRoom(1, At(1)));
  // A server that does not tell its load is not too busy.
  EXPECT_EQ(subset.ExcessOf(2, At(1)), 0);
  EXPECT_TRUE(subset.HasRoom(2, At(1)));
  // A load of 1.2 times the average is not too high. A very low load is never too high.
  subset.Told(0, ServerLoad{.busy = 0.47, .free_places = 0}, At(2));
  EXPECT_EQ(subset.ExcessOf(0, At(2)), 0);
  subset.Told(0, ServerLoad{.busy = 0.09, .free_places = 1}, At(2));
  subset.Told(1, ServerLoad{.busy = 0, .free_places = 0}, At(2));
  EXPECT_EQ(subset.ExcessOf(0, At(2)), 0);
  EXPECT_FALSE(subset.HasRoom(1, At(2)));  // No place is free.
  EXPECT_EQ(subset.LoadOf(0, At(200)), std::nullopt);
}

// Takes `rate` steps a second for a while. The trainer waits for the fraction `waits` of the time.
void TakeSteps(ServerDemand& demand, absl::Duration& now, double rate, double waits,
               absl::Duration time) {
  const absl::Duration end = now + time;
  while (now < end) {
    now += absl::Seconds(1 / rate);
    demand.StepTaken(now, absl::Seconds(waits / rate), /*settled=*/true, /*more=*/true);
  }
}

TEST(ServerDemandTest, GrowsWhileTheLastServerHelped) {
  ServerDemand demand(2, 16);
  absl::Duration now;
  int with_more = 0;
  while (now < absl::Minutes(10)) {
    const int before = demand.wanted();
    TakeSteps(demand, now, /*rate=*/10.0 * std::min(before, 5), /*waits=*/0.5, At(0.1));
    if (demand.wanted() != before) demand.StepTaken(now, At(0), /*settled=*/false, /*more=*/true);
    ASSERT_LE(demand.wanted(), 6);
    ASSERT_GE(demand.wanted(), now < At(30) ? 2 : 5);
    with_more += demand.wanted() == 6 ? 1 : 0;
  }
  // The sixth server does not help, and is tried seldom: for less than a twentieth of the time.
  EXPECT_LT(with_more, 300);
}

TEST(ServerDemandTest, ShrinksToItsInitialValueWhileTheTrainerDoesNotWait) {
  ServerDemand demand(2, 16);
  absl::Duration now;
  while (demand.wanted() < 4) {
    TakeSteps(demand, now, 10.0 * demand.wanted(), /*waits=*/0.5, At(1));
  }
  TakeSteps(demand, now, 10, /*waits=*/0, absl::Minutes(10));
  EXPECT_EQ(demand.wanted(), 2);
}

TEST(ServerDemandTest, AServerThatProvedNeededIsSeldomDroppedAgain) {
  ServerDemand demand(2, 16);
  absl::Duration now;
  int changes = 0;
  int before = demand.wanted();
  // Two servers are too few and three are enough.
  while (now < absl::Hours(1)) {
    TakeSteps(demand, now, demand.wanted() == 2 ? 20 : 30, demand.wanted() == 2 ? 0.5 : 0, At(0.1));
    changes += demand.wanted() != before ? 1 : 0;
    before = demand.wanted();
  }
  EXPECT_LT(changes, 24);  // The pauses are 1, 2, 4, 8, 10, 10 .. minutes.
}

TEST(ServerDemandTest, WaitsForUnsettledStepsDoNotRaiseTheDemand) {
  ServerDemand demand(2, 16);
  for (int second = 0; second < 1000; ++second) {
    demand.StepTaken(At(second), At(0.9), /*settled=*/false, /*more=*/true);
  }
  EXPECT_EQ(demand.wanted(), 2);
}

TEST(LaneSharesTest, ASlowServerGetsHalfOfItsLaneAndThenAQuarter) {
  LaneShares shares;
  absl::Duration now;
  // Begins a plan with the present shares, and takes steps until the shares change. A step of
  // server 1 is awaited for the fraction `slow` of the time, and steps of the other servers for the
  // fraction `fast`. Returns the new share of server 1.
  const auto every_after = [&](double slow, double fast) {
    const std::vector<LaneShare> plan = shares.SharesOf({0, 1, 2, 3});
    shares.Begin(plan);
    for (int step = 0; step < 200 && shares.SharesOf({0, 1, 2, 3}) == plan; ++step) {
      now += absl::Milliseconds(100);
      for (int server = 0; server < 4; ++server) {
        shares.Awaited(server, absl::Milliseconds(100) * (server == 1 ? slow : fast));
      }
      shares.StepTaken(now, /*settled=*/true);
    }
    return shares.SharesOf({0, 1, 2, 3})[1].every;
  };
  EXPECT_EQ(every_after(1, 0.9), 1);
  EXPECT_EQ(every_after(0.5, 0.1), 1);  // All servers pause: the trainer is slow.
  EXPECT_EQ(every_after(1, 0.5), 2);
  EXPECT_EQ(every_after(0.7, 1), 2);
  EXPECT_EQ(every_after(1, 0.5), 4);
  EXPECT_EQ(every_after(1, 0.5), 4);  // A still slower server counts as late and rests.
  EXPECT_THAT(shares.Helpers(shares.SharesOf({0, 1, 2, 3})), ElementsAre(0, 2, 3));
  EXPECT_EQ(every_after(0.3, 1), 2);
  EXPECT_EQ(every_after(0.3, 1), 1);
}

TEST(LaneSharesTest, IfNoServerWouldHaveAWholeLaneAllLanesBecomeWhole) {
  LaneShares shares;
  shares.Begin({{.server = 0, .every = 1}, {.server = 1, .every = 2}});
  EXPECT_THAT(shares.SharesOf({1, 2}),
              ElementsAre(LaneShare{.server = 1, .every = 2}, LaneShare{.server = 2}));
  EXPECT_THAT(shares.SharesOf({1}), ElementsAre(LaneShare{.server = 1}));
}

}  // namespace
}  // namespace systole
