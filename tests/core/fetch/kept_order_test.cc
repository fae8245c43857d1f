#include "core/fetch/kept_order.h"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using testing::ElementsAre;

// Removes the free blocks, and returns them in the order in which they went.
std::vector<int64_t> Leave(KeptOrder& order) {
  std::vector<int64_t> left;
  while (const std::optional<int64_t> first = order.First()) {
    left.push_back(*first);
    order.Remove(*first);
  }
  return left;
}

TEST(KeptOrderTest, ABlockIsSpentWhenAllFeedsThatBeganItHaveReadAll) {
  KeptOrder order;
  order.Read(order.Of(1), 7, 2, 3);
  EXPECT_FALSE(KeptOrder::IsSpent(order.Of(1)));
  order.Read(order.Of(1), 8, 1, 1);
  EXPECT_FALSE(KeptOrder::IsSpent(order.Of(1)));
  order.Read(order.Of(1), 7, 1, 3);
  EXPECT_TRUE(KeptOrder::IsSpent(order.Of(1)));
}

TEST(KeptOrderTest, ASpentBlockIsUnspentAgainInTheNextPassOfItsFeed) {
  KeptOrder order;
  order.Read(order.Of(1), 7, 2, 2);
  EXPECT_TRUE(KeptOrder::IsSpent(order.Of(1)));
  order.Read(order.Of(1), 7, 1, 2);
  EXPECT_FALSE(KeptOrder::IsSpent(order.Of(1)));
  order.Read(order.Of(1), 7, 1, 2);
  EXPECT_TRUE(KeptOrder::IsSpent(order.Of(1)));
}

TEST(KeptOrderTest, UnreadTakesBackTheReadThatMadeABlockSpent) {
  KeptOrder order;
  order.Read(order.Of(1), 7, 2, 2);
  order.Unread(order.Of(1), 7, 1);
  EXPECT_FALSE(KeptOrder::IsSpent(order.Of(1)));
}

TEST(KeptOrderTest, SpentBlocksAreDroppedFirstThenTheLeastRecentlyRead) {
  KeptOrder order;
  order.Read(order.Of(1), 7, 1, 2);
  order.Read(order.Of(2), 7, 1, 2);
  order.Read(order.Of(3), 7, 1, 1);
  order.Read(order.Of(1), 7, 0, 2);
  for (const int64_t block : {1, 2, 3}) order.SetFree(order.Of(block), true);
  EXPECT_THAT(Leave(order), ElementsAre(3, 2, 1));
}

TEST(KeptOrderTest, WithOneFeedTheBlockSpentLastIsDroppedFirst) {
  KeptOrder order;
  for (const int64_t block : {1, 2, 3}) order.Read(order.Of(block), 7, 1, 1);
  for (const int64_t block : {1, 2, 3}) order.SetFree(order.Of(block), true);
  EXPECT_THAT(Leave(order), ElementsAre(3, 2, 1));
}

TEST(KeptOrderTest, WithSeveralFeedsTheBlockSpentFirstIsDroppedFirst) {
  KeptOrder order;
  for (const int64_t block : {1, 2, 3}) order.Read(order.Of(block), 7, 1, 1);
  order.Read(order.Of(1), 8, 1, 1);
  for (const int64_t block : {1, 2, 3}) order.SetFree(order.Of(block), true);
  EXPECT_THAT(Leave(order), ElementsAre(2, 3, 1));
}

TEST(KeptOrderTest, BlocksInUseAreNotDropped) {
  KeptOrder order;
  order.Read(order.Of(1), 7, 1, 1);
  EXPECT_EQ(order.First(), std::nullopt);
  order.SetFree(order.Of(1), true);
  EXPECT_EQ(order.First(), 1);
  order.SetFree(order.Of(1), false);
  EXPECT_EQ(order.First(), std::nullopt);
}

// The order is computed only when First() is called. It must not depend on the number of calls.
TEST(KeptOrderTest, TheDropOrderDoesNotDependOnHowOftenFirstIsCalled) {
  KeptOrder asked;
  KeptOrder order;
  for (int64_t i = 0; i < 2000; ++i) {
    const int64_t block = i * i % 37;
    const int64_t gone = i * 7 % 41;
    for (KeptOrder* const each : {&asked, &order}) {
      each->Read(each->Of(block), 7 + i % 2, i % 3, 3);
      each->SetFree(each->Of(block), i % 5 != 0);
      if (i % 4 == 0) each->Remove(gone);
    }
    asked.First();
  }
  EXPECT_EQ(order.size(), asked.size());
  EXPECT_EQ(Leave(order), Leave(asked));
}

TEST(KeptOrderTest, UnfinishedBlocksOfAGoneFeedAreDroppedFirst) {
  KeptOrder order;
  order.Read(order.Of(1), 7, 1, 2);  // Feed 7 reads no more.
  order.Read(order.Of(2), 8, 1, 1);
  for (int64_t read = 0; read < KeptOrder::kIdleReads; ++read) order.Read(order.Of(3), 8, 1, 2);
  for (const int64_t block : {1, 2, 3}) order.SetFree(order.Of(block), true);
  EXPECT_THAT(Leave(order), ElementsAre(1, 3, 2));
}

TEST(KeptOrderTest, BeyondMaxFeedsABlockForgetsItsOldestFeed) {
  KeptOrder order;
  order.Read(order.Of(1), 100, 1, 2);
  for (uint64_t feed = 0; feed < KeptOrder::kMaxFeeds; ++feed) order.Read(order.Of(1), feed, 1, 1);
  EXPECT_TRUE(KeptOrder::IsSpent(order.Of(1)));
}

// Each epoch reads the same `blocks` blocks, and the cache has room for `room` blocks. Returns how
// many blocks each epoch finds in the cache.
std::vector<int> HitsOf(int blocks, size_t room) {
  KeptOrder order;
  std::set<int64_t> kept;
  std::vector<int> hits;
  for (int epoch = 0; epoch < 4; ++epoch) {
    hits.push_back(0);
    for (int64_t block = 0; block < blocks; ++block) {
      hits.back() += kept.contains(block) ? 1 : 0;
      while (!kept.contains(block) && kept.size() == room) {
        const int64_t first = *order.First();
        order.Remove(first);
        kept.erase(first);
      }
      kept.insert(block);
      order.Read(order.Of(block), 7, 1, 1);
      order.SetFree(order.Of(block), true);
    }
  }
  return hits;
}

TEST(KeptOrderTest, WithRoomForHalfOfTheBlocksNearlyHalfAreCacheHits) {
  EXPECT_THAT(HitsOf(100, 50), ElementsAre(0, 50, testing::Ge(48), testing::Ge(48)));
  EXPECT_THAT(HitsOf(100, 100), ElementsAre(0, 100, 100, 100));
}

}  // namespace
}  // namespace systole
