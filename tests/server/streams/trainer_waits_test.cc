#include "server/streams/trainer_waits.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::Optional;

class TrainerWaitsTest : public testing::Test {
 protected:
  void Say(const std::string& peer, uint64_t client, double waits,
           FeedLimit limit = FeedLimit::kDecode) {
    waits_.Add(peer, client, {.waits = waits, .limit = limit});
  }

  absl::Duration now_ = absl::Seconds(100);
  TrainerWaits waits_{[this] { return now_; }};
};

TEST_F(TrainerWaitsTest, TheLastReportOfEachClientCounts) {
  Say("a", 1, 0.5);
  Say("a", 2, 0.1, FeedLimit::kTrainer);
  Say("b", 1, 0.0, FeedLimit::kNothing);
  now_ += absl::Seconds(10);
  Say("a", 1, 0.8, FeedLimit::kStorage);
  EXPECT_THAT(waits_.Of("a", 1).waits, Optional(0.8));
  EXPECT_THAT(waits_.Of("b", 1).waits, Optional(0.0));
  const TrainerTotals totals = waits_.totals();
  EXPECT_EQ(totals.trainers, 3);
  EXPECT_DOUBLE_EQ(totals.mean_waits, 0.3);
  EXPECT_DOUBLE_EQ(totals.max_waits, 0.8);
  EXPECT_EQ(totals.limited_by(FeedLimit::kStorage), 1);
  EXPECT_EQ(totals.limited_by(FeedLimit::kDecode), 0);
  EXPECT_EQ(totals.limited_by(FeedLimit::kTrainer), 1);
  EXPECT_EQ(totals.limited_by(FeedLimit::kNothing), 1);
}

TEST_F(TrainerWaitsTest, ReportsOfPeersWithTheSameClientNumberAreSeparate) {
  Say("a", 1, 0.5);
  Say("b", 1, 1.0);
  EXPECT_THAT(waits_.Of("a", 1).waits, Optional(0.5));
  EXPECT_EQ(waits_.Of("c", 1), TrainerReport());
}

TEST_F(TrainerWaitsTest, AReportCountsFor30Seconds) {
  Say("a", 1, 0.5);
  now_ += kReportCountsFor - absl::Nanoseconds(1);
  EXPECT_THAT(waits_.Of("a", 1).waits, Optional(0.5));
  now_ += absl::Nanoseconds(1);
  EXPECT_EQ(waits_.Of("a", 1), TrainerReport());
  EXPECT_EQ(waits_.totals().trainers, 0);
  EXPECT_EQ(waits_.totals().mean_waits, 0);
  EXPECT_EQ(waits_.size(), 1u);
  waits_.Tick();
  EXPECT_EQ(waits_.size(), 0u);
}

TEST_F(TrainerWaitsTest, AReportThatComesTooSoonIsIgnored) {
  Say("a", 1, 0.5);
  now_ += kLeastReportInterval - absl::Nanoseconds(1);
  Say("a", 1, 0.9);
  EXPECT_THAT(waits_.Of("a", 1).waits, Optional(0.5));
  now_ += absl::Nanoseconds(1);
  Say("a", 1, 0.9);
  EXPECT_THAT(waits_.Of("a", 1).waits, Optional(0.9));
}

TEST_F(TrainerWaitsTest, AReportWithoutWaitsOrClientNumberIsNotKept) {
  waits_.Add("a", 1, {});
  Say("a", 0, 0.5);  // 0: the client has no number.
  EXPECT_EQ(waits_.size(), 0u);
  // A report without `waits` does not replace an earlier one that has it.
  Say("a", 1, 0.5);
  now_ += absl::Seconds(10);
  waits_.Add("a", 1, {});
  EXPECT_THAT(waits_.Of("a", 1).waits, Optional(0.5));
}

TEST_F(TrainerWaitsTest, APeerWithTooManyTrainersLosesItsOwnOldestReports) {
  Say("quiet", 1, 0.25);
  for (uint64_t client = 1; client <= 3 * kMaxTrainersOfPeer; ++client) {
    now_ += absl::Milliseconds(1);
    Say("loud", client, 0.5);
    ASSERT_LE(waits_.size(), kMaxTrainersOfPeer + 1);
  }
  EXPECT_EQ(waits_.size(), kMaxTrainersOfPeer + 1);
  EXPECT_THAT(waits_.Of("quiet", 1).waits, Optional(0.25));
  EXPECT_THAT(waits_.Of("loud", 3 * kMaxTrainersOfPeer).waits, Optional(0.5));
  EXPECT_EQ(waits_.Of("loud", 2 * kMaxTrainersOfPeer), TrainerReport());
}

TEST_F(TrainerWaitsTest, ReportsOfAllPeersAreBoundedAndTheBusiestPeerLosesFirst) {
  const auto say = [this](const std::string& peer, uint64_t client) {
    now_ += absl::Milliseconds(1);
    Say(peer, client, 0.5);
    ASSERT_LE(waits_.size(), kMaxTrainers);
  };
  const int most = static_cast<int>(kMaxTrainers);
  for (int i = 0; i < 2 * most; ++i) say(absl::StrCat("peer ", i), 7);
  // The oldest reports were dropped.
  EXPECT_EQ(waits_.Of("peer 0", 7), TrainerReport());
  EXPECT_THAT(waits_.Of(absl::StrCat("peer ", most), 7).waits, Optional(0.5));
  // When there are too many reports, the peer with the most reports loses its oldest report. So
  // a peer with many clients soon loses one report for each report of a newcomer.
  for (uint64_t client = 1; client <= 100; ++client) say("loud", client);
  for (int i = 0; i < 10; ++i) say(absl::StrCat("newcomer ", i), 7);
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(waits_.Of(absl::StrCat("newcomer ", i), 7).waits, Optional(0.5));
  }
  EXPECT_THAT(waits_.Of(absl::StrCat("peer ", most + 20), 7).waits, Optional(0.5));
  EXPECT_EQ(waits_.totals().trainers, most);
}

}  // namespace
}  // namespace systole
