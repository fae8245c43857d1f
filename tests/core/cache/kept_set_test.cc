#include "core/cache/kept_set.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::ElementsAre;

CacheKey Key(uint64_t number) { return {.high = number * 7, .low = number}; }

const auto kNoEviction = [](const CacheKey&) { ADD_FAILURE() << "an entry was evicted"; };

// Makes one pass over `records` records of cost 10 as a feed does: a record that is not found is
// kept if there is room. Returns how many were found.
int Pass(KeptSet& set, uint64_t user, int records) {
  int found = 0;
  for (int i = 0; i < records; ++i) {
    const CacheKey key = Key(user * 1'000'000 + static_cast<uint64_t>(i));
    if (set.Find(key, user)) {
      ++found;
    } else if (set.Admits(10)) {
      set.Insert(key, user, 10, [](const CacheKey&) {});
    }
  }
  return found;
}

TEST(KeptSetTest, IfAPartFitsThatPartIsFoundInEachLaterPass) {
  KeptSet set(/*budget=*/10 * 500);
  EXPECT_EQ(Pass(set, 1, 1000), 0);
  for (int pass = 0; pass < 40; ++pass) EXPECT_EQ(Pass(set, 1, 1000), 500);
  EXPECT_EQ(set.used(), set.budget());
}

TEST(KeptSetTest, TwoUsersShareTheRoomAndKeepWhatTheyHave) {
  KeptSet set(10 * 500);
  Pass(set, 1, 300);
  Pass(set, 2, 300);
  for (int pass = 0; pass < 40; ++pass) {
    EXPECT_EQ(Pass(set, 1, 300), 300);
    EXPECT_EQ(Pass(set, 2, 300), 200);
  }
}

TEST(KeptSetTest, EntriesOfAnIdleUserGiveWayOnlyAfterManyLookUps) {
  KeptSet set(10 * 500);
  Pass(set, 1, 500);
  int64_t look_ups = 0;
  while (Pass(set, 2, 500) < 500) look_ups += 500;
  EXPECT_GE(look_ups, KeptSet::kIdleLookUps);
  EXPECT_LE(look_ups, KeptSet::kIdleLookUps + 3 * 500);
  EXPECT_EQ(set.size(), 500u);
}

TEST(KeptSetTest, AnEntryBelongsToTheUserThatFindsIt) {
  KeptSet set(10 * 10);
  EXPECT_TRUE(set.Insert(Key(1), KeptSet::kNobody, 10, kNoEviction));
  EXPECT_TRUE(set.Insert(Key(2), KeptSet::kNobody, 10, kNoEviction));
  EXPECT_TRUE(set.Find(Key(1), 5));
  std::vector<uint64_t> gone;
  for (int64_t i = 0; i <= KeptSet::kIdleLookUps; ++i) EXPECT_TRUE(set.Find(Key(1), 5));
  for (uint64_t i = 10; i < 19; ++i) {
    set.Insert(Key(i), 5, 10, [&](const CacheKey& key) { gone.push_back(key.low); });
  }
  EXPECT_THAT(gone, ElementsAre(2));
  EXPECT_TRUE(set.Contains(Key(1)));
}

TEST(KeptSetTest, SaysForHowManyValuesItHasRoom) {
  for (const int64_t cost : {1, 3, 10, 80, 100, 101, 800}) {
    KeptSet set(800);
    const int64_t room = set.RoomFor(cost);
    uint64_t kept = 0;
    while (set.Insert(Key(kept + 1), 1, cost, kNoEviction)) ++kept;
    EXPECT_EQ(static_cast<int64_t>(kept), room) << cost;
    EXPECT_EQ(set.RoomFor(cost), room);
  }
}

TEST(KeptSetTest, AValueThatTakesTooMuchIsNotKept) {
  KeptSet set(80);
  EXPECT_TRUE(set.Admits(10));
  EXPECT_FALSE(set.Admits(11));
  EXPECT_FALSE(set.Insert(Key(1), 1, 11, kNoEviction));
  EXPECT_FALSE(KeptSet(0).Admits(1));
  EXPECT_FALSE(KeptSet(0).Insert(Key(1), 1, 1, kNoEviction));
}

TEST(KeptSetTest, AKeyIsKeptOnceAndGivesItsRoomBack) {
  KeptSet set(80);
  EXPECT_TRUE(set.Insert(Key(1), 1, 10, kNoEviction));
  EXPECT_FALSE(set.Insert(Key(1), 2, 10, kNoEviction));
  EXPECT_EQ(set.used(), 10);
  set.Remove(Key(1));
  set.Remove(Key(1));
  EXPECT_EQ(set.used(), 0);
  EXPECT_FALSE(set.Find(Key(1), 1));
  EXPECT_TRUE(set.Insert(Key(1), 2, 10, kNoEviction));
}

}  // namespace
}  // namespace systole
