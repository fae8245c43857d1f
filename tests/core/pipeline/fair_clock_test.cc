#include "core/pipeline/fair_clock.h"

#include <array>
#include <cstddef>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// A party that always wants, and whose pieces of work all cost the same.
struct Party {
  FairClock::Account account;
  double cost;
  double had = 0;
};

// Serves whoever goes first until `total` is spent.
void Serve(FairClock& clock, std::vector<Party*> parties, double total) {
  for (double spent = 0; spent < total;) {
    Party* next = parties[0];
    for (Party* party : parties) {
      if (party->account.GoesBefore(next->account)) next = party;
    }
    const double charged = clock.Take(next->account, 1);
    FairClock::Finish(next->account, 1, charged, next->cost);
    next->had += next->cost;
    spent += next->cost;
  }
}

TEST(FairClockTest, PartiesGetAlikeWhateverTheirPiecesCost) {
  FairClock clock;
  Party cheap = {.account = FairClock::Account(1), .cost = 1};
  Party dear = {.account = FairClock::Account(1), .cost = 100};
  Serve(clock, {&cheap, &dear}, 10'000);
  EXPECT_NEAR(cheap.had, 5'000, 101);
  EXPECT_NEAR(dear.had, 5'000, 101);
}

TEST(FairClockTest, AGuessFarOffIsMadeGood) {
  FairClock clock;
  Party modest = {.account = FairClock::Account(1'000), .cost = 1};  // Guessed a thousand times
  Party greedy = {.account = FairClock::Account(0.001), .cost = 1};  // too dear, and too cheap.
  Serve(clock, {&modest, &greedy}, 1'000);
  EXPECT_NEAR(modest.had, 500, 2);
  EXPECT_NEAR(greedy.had, 500, 2);
}

TEST(FairClockTest, WorkUnderWayIsCharged) {
  FairClock clock;
  std::array<FairClock::Account, 3> accounts = {FairClock::Account(5), FairClock::Account(5),
                                                FairClock::Account(5)};
  // Nothing is finished, as with many threads: they take turns all the same.
  std::vector<int> taken(3, 0);
  for (int i = 0; i < 30; ++i) {
    size_t next = 0;
    for (size_t a = 0; a < 3; ++a) {
      if (accounts[a].GoesBefore(accounts[next])) next = a;
    }
    clock.Take(accounts[next], 8);
    ++taken[next];
  }
  EXPECT_THAT(taken, Each(10));
}

TEST(FairClockTest, WhoWantedNothingForLongHasNoCredit) {
  FairClock clock;
  Party old = {.account = FairClock::Account(1), .cost = 1};
  Party back = {.account = FairClock::Account(1), .cost = 1};
  Serve(clock, {&old}, 1'000);
  clock.Join(back.account);
  old.had = 0;
  Serve(clock, {&old, &back}, 100);
  EXPECT_NEAR(old.had, 50, 2);
  EXPECT_NEAR(back.had, 50, 2);
}

TEST(FairClockTest, WhoHadMoreThanOthersStillOwesItAfterAPause) {
  FairClock clock;
  Party spender = {.account = FairClock::Account(1), .cost = 100};
  Party other = {.account = FairClock::Account(1), .cost = 1};
  Serve(clock, {&spender}, 100);
  clock.Join(spender.account);
  Serve(clock, {&other, &spender}, 99);
  EXPECT_EQ(spender.had, 100);
}

}  // namespace
}  // namespace systole
