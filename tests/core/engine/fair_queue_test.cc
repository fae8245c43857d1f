#include "core/engine/fair_queue.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::Contains;
using ::testing::Eq;
using ::testing::Optional;

using Candidate = FairQueue::Candidate;

constexpr double kEndlessTurn = std::numeric_limits<double>::infinity();

// Streams as candidates for a choice. `candidates` points to the accounts, which must not move.
struct Streams {
  Streams(FairQueue& queue, const std::vector<std::string>& peers) {
    accounts.reserve(peers.size());
    for (const std::string& peer : peers) accounts.emplace_back(queue.clock(), peer, 1);
    for (FairClock::Account& account : accounts) candidates.push_back({.account = &account});
  }

  // Charges the stream `number` with work of this cost.
  void Serve(size_t number, double cost) {
    FairClock::Account& account = accounts[number];
    account.Finish(1, account.Take(1), cost);
  }

  std::vector<FairClock::Account> accounts;
  std::vector<Candidate> candidates;
};

// The choice by the rule of fair_queue.h, and all candidates that may go first by this rule.
// Model() is a plain implementation of the rule: it takes the least advanced candidate of each set.
struct Expected {
  FairQueue::Choice choice;
  std::vector<size_t> can_be_first;
};

Expected Model(const std::vector<Candidate>& candidates) {
  using Test = std::function<bool(const Candidate&)>;
  const auto least_advanced = [&](const Test& test) {
    std::optional<size_t> best;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].left_out || !test(candidates[i])) continue;
      if (!best || candidates[i].account->GoesBefore(*candidates[*best].account)) best = i;
    }
    return best;
  };
  const Test begins = [](const Candidate& c) { return !c.has_more && c.may_begin; };
  const Test begins_first = [&](const Candidate& c) {
    return begins(c) && c.empty_handed && c.has_room;
  };
  const Test starves = [&](const Candidate& c) {
    return begins(c) && c.empty_handed && !c.has_room;
  };
  FairQueue::Choice choice = {.starved = least_advanced(starves)};
  const std::optional<size_t> holder = least_advanced([&](const Candidate& c) {
    return begins(c) && !c.empty_handed && (c.modest || !choice.starved.has_value());
  });
  const bool holder_goes = holder && candidates[*holder].has_room && !least_advanced(begins_first);
  const Test can_be_first = [&](const Candidate& c) {
    return c.has_more || begins_first(c) || (holder_goes && &c == &candidates[*holder]);
  };
  choice.first = least_advanced(can_be_first);
  Expected expected = {.choice = choice};
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& c = candidates[i];
    if (c.left_out) continue;
    if (can_be_first(c)) expected.can_be_first.push_back(i);
    if (c.has_more || (c.may_begin && c.has_room)) ++expected.choice.wanting;
  }
  return expected;
}

TEST(FairQueueTest, ChoosesLikeAPlainModelForRandomCandidates) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    CounterRng random(seed, 0, 0, 0);
    const auto flip = [&](int one_in) { return random.UniformInt(0, one_in) == 0; };
    FairQueue queue(kEndlessTurn);
    std::vector<std::string> peers;
    const auto count = static_cast<int>(random.UniformInt(1, 12));
    for (int i = 0; i < count; ++i) peers.push_back(absl::StrCat("peer ", random.UniformInt(0, 4)));
    Streams streams(queue, peers);
    for (int round = 0; round < 100; ++round) {
      for (Candidate& candidate : streams.candidates) {
        candidate.left_out = flip(8);
        candidate.has_more = flip(4);
        candidate.may_begin = flip(2);
        candidate.has_room = flip(2);
        candidate.empty_handed = flip(3);
        candidate.modest = flip(2);
      }
      std::vector<bool> wanted;
      for (const FairClock::Account& account : streams.accounts) wanted.push_back(account.wants());
      const FairQueue::Choice choice = FairQueue::Choose(streams.candidates);
      const auto [want, can_be_first] = Model(streams.candidates);
      ASSERT_EQ(choice.first.has_value(), want.first.has_value());
      if (choice.first != want.first) {  // Equally advanced candidates: any may go first.
        ASSERT_THAT(can_be_first, Contains(*choice.first));
        ASSERT_FALSE(streams.accounts[*want.first].GoesBefore(streams.accounts[*choice.first]));
      }
      ASSERT_EQ(choice.starved, want.starved);
      ASSERT_EQ(choice.wanting, want.wanting);
      for (size_t i = 0; i < streams.candidates.size(); ++i) {
        const Candidate& c = streams.candidates[i];
        const bool wants = c.has_more || (c.may_begin && c.has_room);
        ASSERT_EQ(streams.accounts[i].wants(), c.left_out ? wanted[i] : wants);
      }
      if (choice.first.has_value()) {
        streams.Serve(*choice.first, static_cast<double>(random.UniformInt(1, 100)));
      }
    }
  }
}

// One of the two peers may have several streams, and other peers come and go.
TEST(FairQueueTest, TwoPeersThatAlwaysHaveWorkAreNeverMoreThanOneUnitApart) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    CounterRng random(seed, 0, 0, 0);
    FairQueue queue(kEndlessTurn);
    const auto streams_of_a = static_cast<size_t>(random.UniformInt(1, 6));
    std::vector<std::string> peers(streams_of_a, "a");
    peers.emplace_back("b");
    for (int i = 0; i < 8; ++i) peers.push_back(absl::StrCat("other ", i % 3));
    Streams streams(queue, peers);
    int64_t of_a = 0, of_b = 0;
    for (int i = 0; i < 2'000; ++i) {
      for (size_t number = 0; number < peers.size(); ++number) {
        const bool always = number == 0 || number == streams_of_a;
        streams.candidates[number].has_more = always || random.UniformInt(0, 3) == 0;
      }
      const std::optional<size_t> first = FairQueue::Choose(streams.candidates).first;
      ASSERT_TRUE(first.has_value());
      streams.Serve(*first, 1);
      if (*first < streams_of_a) ++of_a;
      if (*first == streams_of_a) ++of_b;
      ASSERT_LE(std::abs(of_a - of_b), 1);
    }
    EXPECT_GT(of_a, 300);
  }
}

TEST(FairQueueTest, AStreamThatHoldsSlicesWaitsForAnEarlierStreamWithoutRoom) {
  FairQueue queue(kEndlessTurn);
  Streams streams(queue, {"large", "small"});
  streams.candidates[0].may_begin = true;
  streams.candidates[1].may_begin = streams.candidates[1].has_room = true;
  EXPECT_EQ(FairQueue::Choose(streams.candidates).first, std::nullopt);
  streams.Serve(0, 10);  // Now it is the other peer's turn.
  EXPECT_THAT(FairQueue::Choose(streams.candidates).first, Optional(Eq(1u)));
}

TEST(FairQueueTest, OverdueTasksAreCountedForEachPeer) {
  FairQueue queue(kEndlessTurn);
  queue.CountOverdue("a", true);
  queue.CountOverdue("a", true);
  queue.CountOverdue("b", true);
  queue.CountOverdue("a", false);
  queue.CountOverdue("b", false);
  EXPECT_TRUE(queue.IsOverdue("a"));
  EXPECT_FALSE(queue.IsOverdue("b"));
  queue.CountOverdue("a", false);
  EXPECT_FALSE(queue.IsOverdue("a"));
}

}  // namespace
}  // namespace systole
