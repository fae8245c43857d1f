#include "client/schedule/server_roster.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

constexpr Failure kLost = {.kind = FailureKind::kLost};

absl::Duration At(double seconds) { return absl::Seconds(seconds); }

// The servers to which Advance() applies `Action` (AskServer, ForgetServer) at `now`.
template <typename Action>
std::vector<int> Advance(ServerRoster& roster, absl::Duration now, bool used = false) {
  ScheduleActions actions;
  roster.Advance(
      now, /*asks=*/true, [used](int) { return used; }, actions);
  std::vector<int> servers;
  for (const ScheduleAction& action : actions) {
    if (const Action* const one = std::get_if<Action>(&action)) servers.push_back(one->server);
  }
  return servers;
}

// How long after `now` a resting server is asked again.
absl::Duration Pause(ServerRoster& roster, absl::Duration now) {
  absl::Duration at = now;
  while (Advance<AskServer>(roster, at).empty()) at += absl::Milliseconds(1);
  return at - now;
}

TEST(ServerRosterTest, OnlyAServerThatAnsweredServes) {
  ServerRoster roster({});
  roster.Join(1);
  EXPECT_FALSE(roster.Serves(1));
  EXPECT_TRUE(roster.IsExpected(1));
  roster.Answered(1);
  EXPECT_TRUE(roster.Serves(1));
  roster.StreamFailed(1, kLost, At(1));
  EXPECT_FALSE(roster.Serves(1));
  EXPECT_FALSE(roster.IsExpected(1));
  // After the first failure the server is asked at once.
  EXPECT_THAT(Advance<AskServer>(roster, At(1)), ElementsAre(1));
  EXPECT_FALSE(roster.IsExpected(1));
  roster.Answered(1);
  EXPECT_TRUE(roster.Serves(1));
}

TEST(ServerRosterTest, PausesDoubleUntilAStepArrives) {
  ServerRoster roster({.backoff = absl::Milliseconds(100), .max_backoff = absl::Seconds(1)});
  roster.Join(1);
  absl::Duration now = absl::ZeroDuration();
  for (const int wanted_ms : {0, 100, 200, 400, 800, 1000, 1000}) {
    EXPECT_TRUE(roster.AskFailed(1, kLost, now, /*matters=*/true));
    const absl::Duration pause = Pause(roster, now);
    EXPECT_GE(pause, absl::Milliseconds(wanted_ms));
    EXPECT_LE(pause, absl::Milliseconds(wanted_ms) * 1.25 + absl::Milliseconds(1));
    now += pause;
  }
  roster.Answered(1);
  roster.StepArrived(1);
  roster.StreamFailed(1, kLost, now);
  EXPECT_EQ(Pause(roster, now), absl::ZeroDuration());
}

TEST(ServerRosterTest, ALaggingServerRestsOnlyWhileAnotherServerServes) {
  ServerRoster roster({});
  for (const int server : {1, 2}) {
    roster.Join(server);
    roster.Answered(server);
  }
  roster.Lagged(1, At(0));
  EXPECT_THAT(Advance<AskServer>(roster, At(0.9)), IsEmpty());
  EXPECT_THAT(roster.Expected(), ElementsAre(2));
  roster.StreamFailed(2, kLost, At(0.9));
  EXPECT_THAT(Advance<AskServer>(roster, At(0.9)), ElementsAre(1, 2));
}

TEST(ServerRosterTest, ADrainingServerRestsOnlyWhileAnotherServerServes) {
  ServerRoster roster({});
  for (const int server : {1, 2}) {
    roster.Join(server);
    roster.Answered(server);
  }
  roster.StreamFailed(1, {.kind = FailureKind::kLeaving}, At(0));
  EXPECT_THAT(Advance<AskServer>(roster, At(0.9)), IsEmpty());
  roster.StreamFailed(2, kLost, At(0.9));
  EXPECT_THAT(Advance<AskServer>(roster, At(0.9)), ElementsAre(1, 2));
}

TEST(ServerRosterTest, LagsAreForgottenAfterSixteenSteps) {
  ServerRoster roster({});
  for (const int server : {1, 2}) {
    roster.Join(server);
    roster.Answered(server);
  }
  const auto lag = [&](absl::Duration now) {
    roster.Lagged(1, now);
    const absl::Duration pause = Pause(roster, now);
    roster.Answered(1);
    return pause;
  };
  EXPECT_LT(lag(At(0)), absl::Seconds(1.3));
  for (int i = 0; i < 15; ++i) roster.StepArrived(1);
  EXPECT_GE(lag(At(100)), absl::Seconds(2));
  for (int i = 0; i < 16; ++i) roster.StepArrived(1);
  EXPECT_LT(lag(At(200)), absl::Seconds(1.3));
}

TEST(ServerRosterTest, AServerThatLeftIsForgottenOnceNothingUsesIt) {
  ServerRoster roster({});
  EXPECT_FALSE(roster.Leave(1));
  roster.Join(1);
  EXPECT_TRUE(roster.Leave(1));
  EXPECT_THAT(Advance<ForgetServer>(roster, At(0)), IsEmpty());  // The server is still being asked.
  EXPECT_FALSE(roster.AskFailed(1, kLost, At(0), /*matters=*/true));
  EXPECT_THAT(Advance<ForgetServer>(roster, At(0), /*used=*/true), IsEmpty());
  EXPECT_THAT(Advance<ForgetServer>(roster, At(0)), ElementsAre(1));
  EXPECT_FALSE(roster.Knows(1));
}

TEST(ServerRosterTest, TheServerWithTheFewestLanesIsChosen) {
  ServerRoster roster({});
  for (const int server : {1, 2, 3, 4}) roster.Join(server);
  const std::map<int, int64_t> lanes = {{1, 0}, {2, 3}, {3, 1}, {4, 1}};
  const auto choose = [&](std::optional<int> avoided = std::nullopt) {
    return roster.Choose([&](int server) { return lanes.at(server); }, avoided);
  };
  EXPECT_EQ(choose(), std::nullopt);
  for (const int server : {2, 3, 4}) roster.Answered(server);
  EXPECT_THAT(choose(), Optional(3));
  EXPECT_THAT(choose(/*avoided=*/3), Optional(4));
}

// Whatever happens, no server is asked while it is being asked or serves, or after it has left.
// Every resting server is asked again in the end.
TEST(ServerRosterTest, NoServerIsAskedTwiceAtOnceAndEveryRestingServerIsAskedAgain) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    CounterRng random(seed, 0, 0, 0);
    ServerRoster roster({.seed = seed});
    std::set<int> asked, left, known;
    absl::Duration now = absl::ZeroDuration();
    const auto advance = [&] {
      ScheduleActions actions;
      roster.Advance(
          now, /*asks=*/true, [](int) { return false; }, actions);
      for (const ScheduleAction& action : actions) {
        if (const auto* const ask = std::get_if<AskServer>(&action)) {
          ASSERT_FALSE(roster.Serves(ask->server) || left.contains(ask->server));
          ASSERT_TRUE(asked.insert(ask->server).second);
        } else {
          const int server = std::get<ForgetServer>(action).server;
          ASSERT_TRUE(left.contains(server) && !asked.contains(server));
          known.erase(server);
        }
      }
    };
    for (int next = 0, i = 0; i < 500; ++i) {
      now += absl::Milliseconds(random.UniformInt(0, 300));
      const int server = next == 0 ? 0 : static_cast<int>(random.UniformInt(0, next));
      const Failure failure = {.kind = random.UniformInt(0, 3) == 0 ? FailureKind::kLeaving
                                                                    : FailureKind::kLost};
      switch (random.UniformInt(0, 8)) {
        case 0:
          if (next == 8) break;
          roster.Join(next);
          known.insert(next);
          asked.insert(next++);
          break;
        case 1:
          if (random.UniformInt(0, 4) == 0 && roster.Leave(server)) left.insert(server);
          break;
        case 2:
        case 3:
          if (asked.erase(server) > 0) roster.Answered(server);
          break;
        case 4:
          if (asked.erase(server) > 0) roster.AskFailed(server, failure, now, /*matters=*/true);
          break;
        case 5:
          roster.StreamFailed(server, failure, now);
          break;
        case 6:
          roster.Lagged(server, now);
          break;
        default:
          roster.StepArrived(server);
      }
      advance();
      if (HasFatalFailure()) return;
    }
    now += absl::Hours(1);
    advance();
    for (const int server : known) {
      EXPECT_TRUE(roster.Serves(server) || asked.contains(server)) << server;
    }
  }
}

}  // namespace
}  // namespace systole
