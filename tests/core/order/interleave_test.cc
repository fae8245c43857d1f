#include "core/order/interleave.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

// The records of all positions. The records of all files are numbered in the order of the files.
std::vector<int64_t> Records(const std::vector<int64_t>& sizes, int64_t cycle_length,
                             int64_t block_length) {
  std::vector<int64_t> begins;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    begins.push_back(begin);
    begin += size;
  }
  const Interleave interleave(sizes, cycle_length, block_length);
  EXPECT_EQ(interleave.num_records(), begin);
  std::vector<int64_t> records;
  std::map<int64_t, Interleave::Round> rounds;  // The key is the stride.
  for (int64_t position = 0; position < begin; ++position) {
    const Interleave::At at = interleave.RecordAt(position);
    for (const int64_t stride : {1, 2, 7}) {
      if (position % stride != 0) continue;
      const Interleave::At walked = interleave.RecordAt(position, rounds[stride]);
      EXPECT_EQ(walked.file, at.file) << position << " by " << stride;
      EXPECT_EQ(walked.index, at.index) << position << " by " << stride;
    }
    records.push_back(begins[static_cast<size_t>(at.file)] + at.index);
  }
  return records;
}

// Computes the same records by taking turns, one record after the other.
std::vector<int64_t> RecordsByTurns(const std::vector<int64_t>& sizes, int64_t cycle_length,
                                    int64_t block_length) {
  struct Open {
    int64_t next = 0;
    int64_t end = 0;
  };
  std::vector<std::optional<Open>> slots(static_cast<size_t>(cycle_length));
  std::vector<int64_t> records;
  size_t next_file = 0;
  int64_t begin = 0;
  size_t num_open = 0;
  for (size_t slot = 0; next_file < sizes.size() || num_open > 0;
       slot = (slot + 1) % slots.size()) {
    std::optional<Open>& open = slots[slot];
    if (!open.has_value()) {
      if (next_file == sizes.size()) continue;
      open = Open{.next = begin, .end = begin + sizes[next_file]};
      begin += sizes[next_file++];
      ++num_open;
    }
    int64_t given = 0;
    for (; given < block_length && open->next < open->end; ++given) records.push_back(open->next++);
    if (given == block_length) continue;
    open.reset();
    --num_open;
  }
  return records;
}

std::vector<int64_t> Numbers(const std::string& text) {
  std::vector<int64_t> numbers;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    numbers.push_back(0);
    EXPECT_TRUE(absl::SimpleAtoi(word, &numbers.back())) << word;
  }
  return numbers;
}

TEST(InterleaveTest, OrdersAreThoseOfTensorFlow) {
  std::ifstream file(
      "tests/golden/tensorflow/interleave.txt");  // Tests run at the top of the tree.
  std::string line;
  int cases = 0;
  while (std::getline(file, line)) {
    if (line.starts_with('#')) continue;
    SCOPED_TRACE(line);
    const std::vector<std::string> parts = absl::StrSplit(line, '|');
    ASSERT_EQ(parts.size(), 3u);
    const std::vector<int64_t> lengths = Numbers(parts[0]);
    EXPECT_EQ(Records(Numbers(parts[1]), lengths[0], lengths[1]), Numbers(parts[2]));
    ++cases;
  }
  EXPECT_EQ(cases, 60);
}

TEST(InterleaveTest, RecordAtMatchesASimulationThatTakesTurns) {
  uint64_t state = 1;
  const auto draw = [&state](int64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(below));
  };
  for (int i = 0; i < 3000; ++i) {
    std::vector<int64_t> sizes(static_cast<size_t>(draw(12)));
    for (int64_t& size : sizes) size = draw(30);
    const int64_t cycle_length = 1 + draw(14);
    const int64_t block_length = 1 + draw(9);
    ASSERT_EQ(Records(sizes, cycle_length, block_length),
              RecordsByTurns(sizes, cycle_length, block_length));
  }
}

TEST(InterleaveTest, HugeNumbersStayInRange) {
  constexpr int64_t kHuge = int64_t{1} << 60;
  for (const int64_t block_length : {int64_t{1}, kHuge - 1, kHuge, kHuge + 1, INT64_MAX}) {
    SCOPED_TRACE(block_length);
    const Interleave interleave({kHuge, kHuge, kHuge, 5}, kMaxCycleLength, block_length);
    EXPECT_EQ(interleave.num_records(), 3 * kHuge + 5);
    const Interleave::At last = interleave.RecordAt(3 * kHuge + 4);
    EXPECT_EQ(last.index, block_length >= kHuge ? 4 : kHuge - 1);
    EXPECT_EQ(interleave.RecordAt(0).index, 0);
  }
}

}  // namespace
}  // namespace systole
