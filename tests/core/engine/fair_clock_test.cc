#include "core/engine/fair_clock.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::Each;

// A stream that always wants work. All its pieces of work cost the same.
struct Party {
  Party(FairClock& clock, const std::string& peer, double cost, double guess = 1)
      : peer(peer), account(clock, peer, guess), cost(cost) {
    account.SetWants(true);
  }

  std::string peer;
  FairClock::Account account;
  double cost;
  double had = 0;
};

Party& First(const std::vector<Party*>& parties) {
  Party* next = parties[0];
  for (Party* party : parties) {
    if (party->account.GoesBefore(next->account)) next = party;
  }
  return *next;
}

// Serves the party that goes first, again and again, until `total` is spent.
void Serve(const std::vector<Party*>& parties, double total) {
  for (double spent = 0; spent < total;) {
    Party& next = First(parties);
    const double charged = next.account.Take(1);
    next.account.Finish(1, charged, next.cost);
    next.had += next.cost;
    spent += next.cost;
  }
}

// The tests run once for streams of different peers and once for streams of one peer.
class FairClockTest : public testing::TestWithParam<bool> {
 protected:
  std::string Peer(int number) const { return GetParam() ? absl::StrCat(number) : "one"; }

  FairClock clock_;
};

INSTANTIATE_TEST_SUITE_P(Levels, FairClockTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Peers" : "Streams"; });

TEST_P(FairClockTest, UndoRemovesThePiecesChargeAndKeepsTheCostGuess) {
  Party one(clock_, Peer(0), 1);
  Party other(clock_, Peer(1), 1);
  one.account.Undo(one.account.Take(100));
  EXPECT_FALSE(one.account.GoesBefore(other.account));
  EXPECT_FALSE(other.account.GoesBefore(one.account));
  EXPECT_EQ(one.account.Take(1), other.account.Take(1));  // Undo() has changed no guess.
}

TEST_P(FairClockTest, PartiesGetEqualSharesWhateverTheirPiecesCost) {
  Party cheap(clock_, Peer(0), 1);
  Party dear(clock_, Peer(1), 100);
  Serve({&cheap, &dear}, 10'000);
  EXPECT_NEAR(cheap.had, 5'000, 101);
  EXPECT_NEAR(dear.had, 5'000, 101);
}

TEST_P(FairClockTest, PartiesGetEqualSharesDespiteWrongCostGuesses) {
  Party modest(clock_, Peer(0), 1, /*guess=*/1'000);
  Party greedy(clock_, Peer(1), 1, /*guess=*/0.001);
  Serve({&modest, &greedy}, 1'000);
  EXPECT_NEAR(modest.had, 500, 2);
  EXPECT_NEAR(greedy.had, 500, 2);
}

TEST_P(FairClockTest, WorkUnderWayIsCharged) {
  std::vector<Party> parties;
  for (int i = 0; i < 3; ++i) parties.emplace_back(clock_, Peer(i), 5, /*guess=*/5);
  // No piece finishes, as if many threads worked at the same time. The parties still take turns.
  std::vector<int> taken(3, 0);
  for (int i = 0; i < 30; ++i) {
    Party& next = First({&parties[0], &parties[1], &parties[2]});
    next.account.Take(8);
    ++taken[static_cast<size_t>(&next - parties.data())];
  }
  EXPECT_THAT(taken, Each(10));
}

TEST_P(FairClockTest, AnIdlePartyEarnsNoCredit) {
  Party old(clock_, Peer(0), 1);
  Party back(clock_, Peer(1), 1);
  back.account.SetWants(false);
  Serve({&old}, 1'000);
  back.account.SetWants(true);
  old.had = 0;
  Serve({&old, &back}, 100);
  EXPECT_NEAR(old.had, 50, 2);
  EXPECT_NEAR(back.had, 50, 2);
}

TEST_P(FairClockTest, APartyKeepsItsDebtAcrossAPause) {
  Party spender(clock_, Peer(0), 100);
  Party other(clock_, Peer(1), 1);
  Serve({&spender}, 100);
  spender.account.SetWants(false);
  spender.account.SetWants(true);
  Serve({&other, &spender}, 99);
  EXPECT_EQ(spender.had, 100);
}

TEST(FairClockOfPeersTest, APeerGetsItsPartHoweverManyStreamsOthersHave) {
  FairClock clock;
  std::vector<Party> crowd;
  crowd.reserve(200);
  for (int i = 0; i < 200; ++i) crowd.emplace_back(clock, "crowd", 1 + i % 7);
  Party alone(clock, "alone", 3);
  std::vector<Party*> all = {&alone};
  for (Party& party : crowd) all.push_back(&party);
  Serve(all, 20'000);
  EXPECT_NEAR(alone.had, 10'000, 10);
  // Each stream of the crowd gets the same amount of work.
  for (const Party& party : crowd) EXPECT_NEAR(party.had, 50, 15);
}

TEST(FairClockOfPeersTest, APeerCannotShedItsDebtByClosingStreams) {
  FairClock clock;
  Party honest(clock, "honest", 1);
  double taken = 0;
  for (int i = 0; i < 2'000; ++i) {
    // A new stream is first charged with a guess of 1. The piece costs a hundred times as much.
    Party fresh(clock, "closes", 100);
    Serve({&honest, &fresh}, 1);
    taken += fresh.had;
    fresh.account.Close();
  }
  EXPECT_NEAR(taken, honest.had, 200);
}

TEST(FairClockOfPeersTest, APieceThatEndsAfterItsStreamClosedIsChargedToThePeer) {
  FairClock clock;
  Party honest(clock, "honest", 1);
  double taken = 0;
  for (int i = 0; i < 2'000; ++i) {
    Party fresh(clock, "closes", 100);
    Party& next = First({&honest, &fresh});
    const double charged = next.account.Take(1);
    fresh.account.Close();
    next.account.Finish(1, charged, next.cost);
    (&next == &honest ? honest.had : taken) += next.cost;
  }
  EXPECT_NEAR(taken, honest.had, 200);
}

TEST(FairClockOfPeersTest, PeersWithoutDebtAreForgottenAndDebtorsAreBounded) {
  FairClock clock;
  for (int i = 0; i < 100; ++i) {
    Party visitor(clock, absl::StrCat("visitor ", i), 1);
    visitor.account.Close();
  }
  EXPECT_EQ(clock.peers(), 0);
  EXPECT_EQ(clock.peers_known(), 0u);
  for (int i = 0; i < 5'000; ++i) {
    Party debtor(clock, absl::StrCat("debtor ", i), 1);
    const double charged = debtor.account.Take(1);
    debtor.account.Finish(1, charged, 1'000 + i);
    debtor.account.Close();
  }
  EXPECT_EQ(clock.peers(), 0);
  EXPECT_LE(clock.peers_known(), FairClock::kMaxDebtors);
}

// Each piece has units for a hundred turns and is given back after one turn. Eight pieces are under
// way.
TEST_P(FairClockTest, PartiesGetEqualSharesWhenPiecesLastManyTurns) {
  FairClock clock(/*turn=*/1);
  Party old(clock, Peer(0), 1);
  Party fresh(clock, Peer(1), 1);
  fresh.account.SetWants(false);
  std::deque<std::pair<Party*, double>> under_way;
  const auto serve = [&](const std::vector<Party*>& parties, int pieces) {
    for (int i = 0; i < pieces; ++i) {
      Party& next = First(parties);
      under_way.emplace_back(&next, next.account.Take(100));
      if (under_way.size() < 8) continue;
      const auto [party, charged] = under_way.front();
      under_way.pop_front();
      party->account.Finish(1, charged, party->cost);
      party->had += party->cost;
    }
  };
  serve({&old}, 100);
  fresh.account.SetWants(true);
  old.had = 0;
  serve({&old, &fresh}, 200);
  EXPECT_NEAR(old.had, 100, 18);
  EXPECT_NEAR(fresh.had, 100, 18);
}

// The header promises: with one thread, peers that always want work are never further apart than
// two pieces. This holds whatever their pieces cost, and whichever other streams come and go.
TEST(FairClockOfPeersTest, TwoPeersAreNeverFurtherApartThanTwoOfTheLargestPieces) {
  constexpr double kLargest = 50;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    CounterRng random(seed, 0, 0, 0);
    FairClock clock;
    std::vector<Party> parties;
    parties.reserve(40);
    for (int i = 0; i < 40; ++i) {
      parties.emplace_back(clock, absl::StrCat("peer ", i % 5), 1, kLargest / 2);
    }
    std::map<std::string, double> had;
    double least_difference = 0, most_difference = 0;
    for (int i = 0; i < 5'000; ++i) {
      // Streams of the other peers come and go. The streams of peer 0 and of peer 1 always want
      // work.
      Party& moody = parties[static_cast<size_t>(random.UniformInt(0, 40))];
      if (moody.peer != "peer 0" && moody.peer != "peer 1") {
        moody.account.SetWants(random.UniformInt(0, 2) == 0);
      }
      std::vector<Party*> wanting;
      for (Party& party : parties) {
        if (party.account.wants()) wanting.push_back(&party);
      }
      Party& next = First(wanting);
      const double cost = 1 + static_cast<double>(random.UniformInt(0, 50));
      next.account.Finish(1, next.account.Take(1), cost);
      had[next.peer] += cost;
      const double difference = had["peer 0"] - had["peer 1"];
      least_difference = std::min(least_difference, difference);
      most_difference = std::max(most_difference, difference);
    }
    EXPECT_LE(most_difference - least_difference, 2 * kLargest);
    EXPECT_GT(had["peer 0"], 10'000);
  }
}

}  // namespace
}  // namespace systole
