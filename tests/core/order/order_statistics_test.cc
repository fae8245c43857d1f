// Orders of different epochs and of neighbouring seeds must look unrelated: they have the same
// record at the same place no more often than by chance, and no more rank correlation. All seeds
// are fixed, so the tests always have the same result.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/order/order.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

struct Shuffle {
  ShuffleMode mode;
  int64_t num_records;
  int64_t block_records;
  int64_t window_records;
};

std::string Name(const Shuffle& s) {
  return absl::StrCat("mode ", static_cast<int>(s.mode), " records ", s.num_records, " block ",
                      s.block_records, " window ", s.window_records);
}

// Many of these numbers of records are powers of two, where the width of the permutation's network
// changes, or neighbours of powers of two. Orders of fewer than 32 records need not look unrelated.
const Shuffle kShuffles[] = {
    {ShuffleMode::kGlobal, 32, 0, 0},      {ShuffleMode::kGlobal, 33, 0, 0},
    {ShuffleMode::kGlobal, 63, 0, 0},      {ShuffleMode::kGlobal, 64, 0, 0},
    {ShuffleMode::kGlobal, 100, 0, 0},     {ShuffleMode::kGlobal, 127, 0, 0},
    {ShuffleMode::kGlobal, 128, 0, 0},     {ShuffleMode::kGlobal, 129, 0, 0},
    {ShuffleMode::kGlobal, 1000, 0, 0},    {ShuffleMode::kGlobal, 4097, 0, 0},
    {ShuffleMode::kWindow, 32, 1, 32},     {ShuffleMode::kWindow, 33, 2, 8},
    {ShuffleMode::kWindow, 1000, 8, 100},  {ShuffleMode::kWindow, 1003, 10, 64},
    {ShuffleMode::kWindow, 4097, 16, 256},
};

std::vector<int64_t> Records(const Shuffle& shuffle, uint64_t seed, int64_t epoch) {
  const absl::StatusOr<Order> order = Order::Create({.seed = seed,
                                                     .mode = shuffle.mode,
                                                     .block_records = shuffle.block_records,
                                                     .window_records = shuffle.window_records,
                                                     .num_records = shuffle.num_records,
                                                     .global_batch = 1});
  std::vector<int64_t> records(shuffle.num_records);
  for (int64_t p = 0; p < shuffle.num_records; ++p) records[p] = order->RecordAt(epoch, p);
  return records;
}

int64_t Matches(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  int64_t matches = 0;
  for (size_t i = 0; i < a.size(); ++i) matches += a[i] == b[i];
  return matches;
}

// Spearman's rank correlation of `a` and `b`, which are permutations of 0 .. n-1.
double RankCorrelation(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  const double n = static_cast<double>(a.size());
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    squares += static_cast<double>((a[i] - b[i]) * (a[i] - b[i]));
  }
  return 1 - 6 * squares / (n * (n * n - 1));
}

// Compares two means over `pairs` pairs of orders with those of independent random orders of n
// records. The differences may be up to 4 sigma.
//   * Number of matches: places where both orders of a pair have the same record. The mean is 1 and
//     the variance 1. In a window shuffle, matches come in runs, so the variance is up to
//     block_records.
//   * Rank correlation. The mean is 0 and the variance 1 / (n - 1). A window shuffle keeps the
//     records of a block near each other, so a record's rank is nearly that of its block. With k
//     blocks the variance is then about 1 / (k - 1).
template <typename MakePair>
void ExpectUnrelated(const Shuffle& shuffle, int pairs, MakePair make_pair) {
  SCOPED_TRACE(Name(shuffle));
  const int64_t block = shuffle.mode == ShuffleMode::kWindow ? shuffle.block_records : 1;
  const double blocks = std::ceil(static_cast<double>(shuffle.num_records) / block);
  double matches = 0, correlation = 0;
  for (int i = 0; i < pairs; ++i) {
    const auto [a, b] = make_pair(i);
    EXPECT_NE(a, b) << "pair " << i;
    matches += Matches(a, b);
    correlation += RankCorrelation(a, b);
  }
  EXPECT_NEAR(matches / pairs, 1, 4 * std::sqrt(static_cast<double>(block) / pairs));
  EXPECT_NEAR(correlation / pairs, 0, 4 * std::sqrt(1 / (blocks - 1) / pairs));
}

TEST(OrderStatisticsTest, NeighbouringSeedsAreUnrelated) {
  for (const Shuffle& shuffle : kShuffles) {
    ExpectUnrelated(shuffle, 60, [&](int i) {
      return std::pair(Records(shuffle, i, 0), Records(shuffle, i + 1, 0));
    });
  }
}

TEST(OrderStatisticsTest, SeedsThatDifferInOneBitAreUnrelated) {
  for (const Shuffle& shuffle : kShuffles) {
    ExpectUnrelated(shuffle, 64, [&](int i) {
      return std::pair(Records(shuffle, 12345, 1), Records(shuffle, 12345 ^ (uint64_t{1} << i), 1));
    });
  }
}

TEST(OrderStatisticsTest, EpochsAreUnrelated) {
  for (const Shuffle& shuffle : kShuffles) {
    ExpectUnrelated(shuffle, 60, [&](int i) {
      return std::pair(Records(shuffle, 99, i), Records(shuffle, 99, i + 1));
    });
  }
}

// A seed and an epoch must not be interchangeable: (s, e + 1) is not (s + 1, e).
TEST(OrderStatisticsTest, SeedPlusEpochDoesNotDetermineTheOrder) {
  for (const Shuffle& shuffle : kShuffles) {
    ExpectUnrelated(shuffle, 60, [&](int i) {
      return std::pair(Records(shuffle, i, 1), Records(shuffle, i + 1, 0));
    });
  }
}

TEST(OrderStatisticsTest, ShufflesHaveNoMoreFixedPointsThanChance) {
  for (const Shuffle& shuffle : kShuffles) {
    std::vector<int64_t> identity(shuffle.num_records);
    for (int64_t i = 0; i < shuffle.num_records; ++i) identity[i] = i;
    ExpectUnrelated(shuffle, 60,
                    [&](int i) { return std::pair(Records(shuffle, 1000 + i, 0), identity); });
  }
}

// For each size, compares one pair of neighbouring seeds and one pair of neighbouring epochs. The
// bound for the mean over all sizes is 4 sigma. The bound for a single size is 6 sigma, because
// about 1,000 sizes are tried.
TEST(OrderStatisticsTest, NeighbouringSeedsAndEpochsAreUnrelatedForSizes32To1000) {
  double seeds = 0, epochs = 0;
  int sizes = 0;
  for (int64_t size = 32; size <= 1000; ++size, ++sizes) {
    const Shuffle shuffle = {ShuffleMode::kGlobal, size, 0, 0};
    const std::vector<int64_t> base = Records(shuffle, 5, 5);
    const std::vector<int64_t> next_seed = Records(shuffle, 6, 5);
    const std::vector<int64_t> next_epoch = Records(shuffle, 5, 6);
    const double sigma = std::sqrt(1.0 / static_cast<double>(size - 1));
    ASSERT_LT(Matches(base, next_seed), 10) << "size " << size;  // Poisson: P(>= 10) about 1e-7.
    ASSERT_LT(Matches(base, next_epoch), 10) << "size " << size;
    ASSERT_LT(std::abs(RankCorrelation(base, next_seed)), 6 * sigma) << "size " << size;
    ASSERT_LT(std::abs(RankCorrelation(base, next_epoch)), 6 * sigma) << "size " << size;
    seeds += RankCorrelation(base, next_seed) / sigma;
    epochs += RankCorrelation(base, next_epoch) / sigma;
  }
  EXPECT_LT(std::abs(seeds), 4 * std::sqrt(static_cast<double>(sizes)));
  EXPECT_LT(std::abs(epochs), 4 * std::sqrt(static_cast<double>(sizes)));
}

}  // namespace
}  // namespace systole
