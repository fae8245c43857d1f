#include "core/order/record_list.h"

#include <cstdint>
#include <vector>

#include "core/random/counter_rng.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

struct Drawn {
  std::vector<uint64_t> words;
  std::vector<int64_t> positions;
};

// Each of `num_positions` is in the list with probability `share` / 1000.
Drawn Draw(int64_t num_positions, int64_t share, uint64_t seed) {
  CounterRng rng(seed, 0, 0, 0);
  Drawn drawn = {.words = std::vector<uint64_t>(static_cast<size_t>(num_positions / 64 + 1))};
  for (int64_t i = 0; i < num_positions; ++i) {
    if (rng.UniformInt(0, 1000) >= share) continue;
    drawn.words[static_cast<size_t>(i / 64)] |= uint64_t{1} << (i % 64);
    drawn.positions.push_back(i);
  }
  return drawn;
}

TEST(RecordListTest, EachRankHasItsPosition) {
  for (const int64_t num_positions : {0, 1, 63, 64, 65, 511, 512, 513, 5000, 70000}) {
    for (const int64_t share : {0, 1, 30, 500, 1000}) {
      const Drawn drawn = Draw(num_positions, share, 7);
      const RecordList list(drawn.words, num_positions);
      ASSERT_EQ(list.size(), static_cast<int64_t>(drawn.positions.size()));
      EXPECT_EQ(list.num_positions(), num_positions);
      for (size_t rank = 0; rank < drawn.positions.size(); ++rank) {
        ASSERT_EQ(list.At(static_cast<int64_t>(rank)), drawn.positions[rank]);
      }
    }
  }
}

TEST(RecordListTest, ALongListMayHoldAllPositionsOrOnlyTheLast) {
  std::vector<uint64_t> words(100'000);
  words.back() = uint64_t{1} << 63;
  const auto positions = static_cast<int64_t>(words.size()) * 64;
  EXPECT_EQ(RecordList(words, positions).At(0), positions - 1);
  words.assign(words.size(), ~uint64_t{0});
  const RecordList all(words, positions);
  for (int64_t rank = 0; rank < positions; rank += 997) ASSERT_EQ(all.At(rank), rank);
}

TEST(RecordListTest, TheHashCoversTheListedPositionsAndTheirRange) {
  const RecordList list({0b101}, 3);
  EXPECT_EQ(list.hash(), RecordList({0b101101, 7}, 3).hash());  // Only 3 bits count.
  EXPECT_NE(list.hash(), RecordList({0b101}, 4).hash());
  EXPECT_NE(list.hash(), RecordList({0b110}, 3).hash());
}

TEST(RecordListTest, AnUnknownListKnowsOnlyItsSizeAndRange) {
  const RecordList list = RecordList::OfUnknown(2, 9, /*hash=*/5);
  EXPECT_FALSE(list.is_known());
  EXPECT_EQ(list.size(), 2);
  EXPECT_EQ(list.num_positions(), 9);
  EXPECT_EQ(list.At(1), kUnknownRecord);
}

}  // namespace
}  // namespace systole
