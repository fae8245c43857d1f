#include "server/listener/allowance.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

constexpr int64_t kKiB = 1 << 10;
constexpr absl::Duration kStart = absl::Hours(1000);

absl::Duration After(double seconds) { return kStart + absl::Seconds(seconds); }

TEST(AllowanceTest, TheLargestFirstRequestAfterAHandshakeWithCertificatesIsAllowed) {
  Allowance allowance(kPlainConnectionCost, kStart);
  allowance.Take({.bytes_received = 8 * kKiB}, kStart);
  allowance.Take({.bytes_received = 88 * kKiB, .streams_opened = 1, .streams_waiting = 1}, kStart);
  EXPECT_FALSE(allowance.IsOver());
  allowance.Take({.bytes_received = 88 * kKiB, .calls_served = 1, .streams_opened = 1}, kStart);
  EXPECT_EQ(allowance.unearned_bytes(), 8 * kKiB);
  EXPECT_EQ(allowance.unearned_streams(), 0);
}

TEST(AllowanceTest, AClientsMaximumOfConcurrentRequestsIsAllowed) {
  Allowance allowance(kPlainConnectionCost, kStart);
  allowance.Take({.bytes_received = 64 * 4 * kKiB, .streams_opened = 64, .streams_waiting = 64},
                 kStart);
  EXPECT_FALSE(allowance.IsOver());
}

TEST(AllowanceTest, AnEndlessMessageExceedsTheAllowanceHoweverSlowlyItArrives) {
  Allowance allowance(kPlainConnectionCost, kStart);
  Traffic traffic = {.streams_opened = 1, .streams_waiting = 1};
  int seconds = 0;
  for (; !allowance.IsOver(); ++seconds) {
    traffic.bytes_received += kKiB;
    traffic.bytes_waiting += kKiB;
    allowance.Take(traffic, After(seconds * 100));
  }
  EXPECT_EQ(traffic.bytes_received, kMaxUnearnedBytes + kKiB);
}

TEST(AllowanceTest, TimeEarnsNothingWhileThePeerLeavesDataUnread) {
  Allowance allowance(kPlainConnectionCost, kStart);
  Traffic traffic = {.calls_served = 1, .unread = true};
  int pings = 0;
  for (; !allowance.IsOver() && pings < 100'000; ++pings) {
    traffic.bytes_received += 17;
    allowance.Take(traffic, After(pings));
  }
  EXPECT_LE(pings, kMaxUnearnedBytes / 17 + 2);
}

TEST(AllowanceTest, ResetStreamsCountTowardTheStreamLimit) {
  Allowance allowance(kPlainConnectionCost, kStart);
  Traffic traffic;
  while (!allowance.IsOver()) {
    traffic.bytes_received += 24;
    ++traffic.streams_opened;
    allowance.Take(traffic, kStart);
  }
  EXPECT_EQ(traffic.streams_opened, kMaxUnearnedStreams + 1);
}

TEST(AllowanceTest, HeaderSizeIsLimitedEvenAfterManyServedCalls) {
  Allowance allowance(kPlainConnectionCost, kStart);
  Traffic traffic = {.calls_served = 1000, .streams_opened = 1, .header_bytes = kMaxHeaderBytes};
  allowance.Take(traffic, kStart);
  EXPECT_FALSE(allowance.IsOver());
  ++traffic.header_bytes;
  allowance.Take(traffic, kStart);
  EXPECT_TRUE(allowance.IsOver());
}

TEST(AllowanceTest, CallsThatAreNotServedEarnNothing) {
  Allowance allowance(kPlainConnectionCost, kStart);
  Traffic traffic;
  int calls = 0;
  for (; !allowance.IsOver(); ++calls) {
    traffic.bytes_received += 200;
    ++traffic.streams_opened;
    allowance.Take(traffic, kStart);
  }
  EXPECT_EQ(calls, kMaxUnearnedStreams + 1);
}

TEST(AllowanceTest, AServedCallEarnsForEarlierBytesButNotForLaterBytes) {
  Allowance allowance(kPlainConnectionCost, kStart);
  allowance.Take({.bytes_received = kKiB, .calls_served = 1000, .streams_opened = 1}, kStart);
  EXPECT_TRUE(allowance.IsClear());
  allowance.Take({.bytes_received = 258 * kKiB, .calls_served = 1000, .streams_opened = 1}, kStart);
  EXPECT_TRUE(allowance.IsOver());
}

// A client that reads a message sends 26 bytes to open the flow control window again, each time
// that it has read 64 KiB or more. So the client does this at most 16 times for a message of 1 MiB.
// A client answers a ping with 17 bytes.
TEST(AllowanceTest, SentBytesEarnAReadersWindowUpdatesAndPingReplies) {
  Allowance allowance(kPlainConnectionCost, kStart);
  Traffic traffic = {.bytes_received = 2 * kKiB, .calls_served = 1, .streams_opened = 1};
  for (int megabyte = 0; megabyte < 100'000; ++megabyte) {
    traffic.bytes_sent += kKiB * kKiB;
    traffic.bytes_received += 16 * 26 + 2 * 17;
    allowance.Take(traffic, After(megabyte * 0.001));
    ASSERT_TRUE(allowance.IsClear());
  }
}

TEST(AllowanceTest, TimeEarnsThePingsOfAnIdleConnectionIndefinitely) {
  Allowance allowance(kPlainConnectionCost, kStart);
  Traffic traffic = {.bytes_received = 300, .calls_served = 1, .streams_opened = 1};
  for (int hour = 0; hour < 1000; ++hour) {
    for (int ping = 0; ping < 360; ++ping) {
      traffic.bytes_received += 2 * 17;
      allowance.Take(traffic, After(hour * 3600 + ping * 10));
      ASSERT_TRUE(allowance.IsClear());
    }
  }
}

TEST(AllowanceTest, TimeEarnsNothingInAdvance) {
  Allowance allowance(kPlainConnectionCost, kStart);
  allowance.Take({.bytes_received = 300 * kKiB}, After(3600));
  EXPECT_EQ(allowance.unearned_bytes(), 0);
  allowance.Take({.bytes_received = 600 * kKiB}, After(3600.5));
  EXPECT_TRUE(allowance.IsOver());
}

// How many waiting requests each flooding connection has.
constexpr int64_t kFlood = 64;

Traffic Waiting(int64_t streams) {
  return {.bytes_received = streams * 15, .streams_opened = streams, .streams_waiting = streams};
}

TEST(AllowancesTest, OverTheTotalLimitTheCostliestPeerLosesItsLargestConnection) {
  Allowances all;
  // Each connection costs little, but together the connections cost most of kMaxUnearnedCost.
  int id = 0;
  for (; all.cost() + 2 * kFlood * kStreamCost < kMaxUnearnedCost; ++id) {
    all.Add(id, "crowd", kPlainConnectionCost, kStart);
    all.Take(id, Waiting(id == 3 ? 11 : 10), kStart);
  }
  EXPECT_EQ(all.FindExcess(kStart), std::nullopt);
  all.Add(1000, "one", kPlainConnectionCost, kStart);
  all.Take(1000, Waiting(kFlood), kStart);
  EXPECT_EQ(all.FindExcess(kStart), std::nullopt);
  all.Add(1001, "crowd", kPlainConnectionCost, kStart);
  all.Take(1001, Waiting(kFlood), kStart);
  EXPECT_EQ(all.FindExcess(kStart), 1001);
  all.Remove(1001, kStart);
  EXPECT_EQ(all.FindExcess(kStart), std::nullopt);
}

TEST(AllowancesTest, ConnectionsWithoutAServedCallAreLimited) {
  Allowances all;
  int id = 0;
  while (!all.FindExcess(kStart).has_value()) all.Add(id++, "crowd", kPlainConnectionCost, kStart);
  EXPECT_EQ(id, kMaxUnearnedCost / kPlainConnectionCost + 1);
  // Connections that have had a call do not count.
  for (int i = 0; i < id; ++i) all.Take(i, {.calls_served = 1}, kStart);
  EXPECT_EQ(all.cost(), 0);
}

TEST(AllowancesTest, ExcessVanishesOnceTimeHasEarnedTheCost) {
  Allowances all;
  for (int id = 0; id < 100; ++id) {
    all.Add(id, absl::StrCat("peer ", id), kPlainConnectionCost, kStart);
    all.Take(id, {.bytes_received = 100 * kKiB, .calls_served = 0}, kStart);
  }
  EXPECT_NE(all.FindExcess(kStart), std::nullopt);
  EXPECT_EQ(all.FindExcess(After(100)), std::nullopt);
}

// The memory of a connection is freed only some time after the connection has ended. So the cost
// becomes a debt of the peer, and the debt falls as time passes.
TEST(AllowancesTest, AnEndedConnectionLeavesADebtThatTimePays) {
  Allowances all;
  all.Add(1, "a", kPlainConnectionCost, kStart);
  all.Take(1, Waiting(kFlood), kStart);
  const int64_t cost = all.cost();
  all.Remove(1, kStart);
  all.Remove(1, kStart);
  EXPECT_EQ(all.cost(), cost);
  EXPECT_TRUE(all.MayComeIn("a", kStart));
  const absl::Duration paid = absl::Milliseconds(cost / kPaidPerMs + 1);
  EXPECT_TRUE(all.MayComeIn("a", kStart + paid / 2));
  EXPECT_GT(all.cost(), 0);
  EXPECT_TRUE(all.MayComeIn("a", kStart + paid));
  EXPECT_EQ(all.cost(), 0);
}

// Opens flooding connections of `peer` and ends them, until together they have cost `cost`.
void Owe(Allowances& all, const std::string& peer, int64_t cost) {
  const int64_t before = all.cost();
  for (int id = 5000; all.cost() < before + cost; ++id) {
    all.Add(id, peer, kPlainConnectionCost, kStart);
    all.Take(id, Waiting(kFlood), kStart);
    all.Remove(id, kStart);
  }
}

TEST(AllowancesTest, APeerWithALargeDebtWaitsForFourSecondsAtMostAndOthersDoNot) {
  Allowances all;
  EXPECT_TRUE(all.MayComeIn("a", kStart));
  Owe(all, "a", kWaitingDebt + 1);
  EXPECT_FALSE(all.MayComeIn("a", kStart));
  EXPECT_TRUE(all.MayComeIn("b", kStart));
  Owe(all, "a", kMaxDebt - all.cost());
  EXPECT_FALSE(all.MayComeIn("a", After(3)));
  EXPECT_TRUE(all.MayComeIn("a", After(4)));
}

TEST(AllowancesTest, OverTheLimitOnlyUnearnedTrafficOfAFloodingPeerIsStopped) {
  Allowances all;
  all.Add(1, "flood", kPlainConnectionCost, kStart);
  all.Add(2, "honest", kPlainConnectionCost, kStart);
  Owe(all, "flood", kMaxUnearnedCost);
  all.Take(1, Waiting(10), kStart);
  all.Take(2, Waiting(10), kStart);
  EXPECT_FALSE(all.MayGoOn(1, kStart));
  EXPECT_TRUE(all.MayGoOn(2, kStart));
  // A connection that has had a served call and sends little may go on, even if its peer floods.
  all.Add(3, "flood", kPlainConnectionCost, kStart);
  all.Take(3, {.bytes_received = 4 * kKiB, .calls_served = 1, .streams_opened = 2}, kStart);
  EXPECT_TRUE(all.MayGoOn(3, kStart));
  EXPECT_TRUE(all.MayGoOn(1, After(4)));
}

TEST(AllowancesTest, PeersThatCostNothingDoNotReduceOtherPeersShares) {
  Allowances all;
  Owe(all, "flood", kMaxUnearnedCost);
  for (int id = 100; id < 4000; ++id) {
    all.Add(id, absl::StrCat("trainer ", id), kPlainConnectionCost, kStart);
    all.Take(id, {.calls_served = 1}, kStart);
  }
  all.Add(1, "honest", kPlainConnectionCost, kStart);
  all.Take(1, Waiting(10), kStart);
  EXPECT_TRUE(all.MayGoOn(1, kStart));
}

TEST(AllowancesTest, OverTheTotalLimitConnectionsAreAdmittedAtALimitedRate) {
  Allowances all;
  for (int id = 0; all.cost() <= kMaxUnearnedCost; ++id) {
    all.Add(id, absl::StrCat("peer ", id), kPlainConnectionCost, kStart);
  }
  EXPECT_TRUE(all.MayComeIn("another", kStart));
  EXPECT_FALSE(all.MayComeIn("a third", kStart));
  EXPECT_TRUE(all.MayComeIn("a third", kStart + absl::Milliseconds(100)));
}

// cost() counts open connections and the debts of ended connections, because the memory of a
// connection is freed some time after its end.
TEST(AllowancesTest, TheTotalCostStaysBoundedHoweverManyPeersFlood) {
  for (const int peers : {1, 2, 16, 100}) {
    Allowances all;
    int64_t most = 0;
    for (int64_t id = 0; id < 20 * peers; ++id) {
      const std::string peer = absl::StrCat("peer ", id % peers);
      if (!all.MayComeIn(peer, kStart)) continue;
      all.Add(id, peer, kPlainConnectionCost, kStart);
      all.Take(id, Waiting(kFlood), kStart);
      most = std::max(most, all.cost());
      if (!all.MayGoOn(id, kStart)) all.Remove(id, kStart);
      while (const std::optional<int64_t> excess = all.FindExcess(kStart))
        all.Remove(*excess, kStart);
    }
    EXPECT_LE(most, kMaxUnearnedCost + kMaxUnearnedCost / 2) << peers;
  }
}

}  // namespace
}  // namespace systole
