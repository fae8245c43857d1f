#include "core/order/shard_map.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ShardMapTest, FindsEveryRecordInOrderAndSkipsEmptyShards) {
  const std::vector<int64_t> counts = {0, 3, 0, 0, 1, 5, 0};
  const absl::StatusOr<ShardMap> map = ShardMap::Create(counts);
  ASSERT_THAT(map, IsOk());
  EXPECT_EQ(map->num_shards(), 7);
  EXPECT_EQ(map->num_records(), 9);
  int64_t record = 0;
  for (int64_t shard = 0; shard < 7; ++shard) {
    for (int64_t index = 0; index < counts[shard]; ++index, ++record) {
      EXPECT_EQ(map->Find(record), (ShardPlace{.shard = shard, .index = index}));
    }
  }
  EXPECT_EQ(record, 9);
}

TEST(ShardMapTest, NoShardsAndOnlyEmptyShardsHoldNoRecords) {
  ASSERT_THAT(ShardMap::Create({}), IsOk());
  EXPECT_EQ(ShardMap::Create({})->num_records(), 0);
  EXPECT_EQ(ShardMap::Create({})->num_shards(), 0);
  EXPECT_EQ(ShardMap::Create({0, 0})->num_records(), 0);
  EXPECT_EQ(ShardMap::Create({0, 0})->num_shards(), 2);
}

TEST(ShardMapTest, FindsEveryRecordOfAThousandShards) {
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < 1000; ++i) counts.push_back(i * 7919 % 13);
  const absl::StatusOr<ShardMap> map = ShardMap::Create(counts);
  ASSERT_THAT(map, IsOk());
  int64_t record = 0;
  for (int64_t shard = 0; shard < 1000; ++shard) {
    for (int64_t index = 0; index < counts[shard]; ++index, ++record) {
      ASSERT_EQ(map->Find(record), (ShardPlace{.shard = shard, .index = index}));
    }
  }
  EXPECT_EQ(record, map->num_records());
}

TEST(ShardMapTest, HugeCountsAddUp) {
  const int64_t half = int64_t{1} << 61;
  const absl::StatusOr<ShardMap> map = ShardMap::Create({half, half});
  ASSERT_THAT(map, IsOk());
  EXPECT_EQ(map->Find(half - 1), (ShardPlace{.shard = 0, .index = half - 1}));
  EXPECT_EQ(map->Find(2 * half - 1), (ShardPlace{.shard = 1, .index = half - 1}));
}

TEST(ShardMapTest, InvalidRecordCountsOfShardsAreRefused) {
  EXPECT_THAT(ShardMap::Create({1, -2}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("shard 1"), HasSubstr("-2 records"))));
  EXPECT_THAT(ShardMap::Create({int64_t{1} << 62, 1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2^62")));
}

TEST(ShardMapDeathTest, RecordsOutOfRangeAreTheCallersBug) {
  const absl::StatusOr<ShardMap> map = ShardMap::Create({2, 3});
  EXPECT_DEATH(map->Find(5), "record");
  EXPECT_DEATH(map->Find(-1), "record");
}

}  // namespace
}  // namespace systole
