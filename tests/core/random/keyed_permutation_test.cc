#include "core/random/keyed_permutation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

std::vector<int64_t> Values(const KeyedPermutation& permutation) {
  std::vector<int64_t> values(permutation.size());
  for (int64_t i = 0; i < permutation.size(); ++i) values[i] = permutation.At(i);
  return values;
}

bool IsPermutation(const std::vector<int64_t>& values) {
  std::vector<bool> seen(values.size());
  for (const int64_t v : values) {
    if (v < 0 || v >= static_cast<int64_t>(values.size()) || seen[v]) return false;
    seen[v] = true;
  }
  return true;
}

TEST(KeyedPermutationTest, IsAPermutationForEverySizeUpTo5000) {
  for (int64_t size = 1; size <= 5000; ++size) {
    ASSERT_TRUE(IsPermutation(Values(KeyedPermutation(size, /*seed=*/size * 77, /*epoch=*/3))))
        << "size " << size;
  }
}

TEST(KeyedPermutationTest, IsAPermutationAroundLargerPowersOfTwo) {
  for (const int bits : {13, 16, 17}) {
    for (const int64_t off : {-1, 0, 1}) {
      const int64_t size = (int64_t{1} << bits) + off;
      ASSERT_TRUE(IsPermutation(Values(KeyedPermutation(size, 5, 6)))) << "size " << size;
    }
  }
  ASSERT_TRUE(IsPermutation(Values(KeyedPermutation(1000003, 5, 6))));
}

TEST(KeyedPermutationTest, InverseUndoesAtForEverySizeUpTo600) {
  for (int64_t size = 1; size <= 600; ++size) {
    const KeyedPermutation permutation(size, 11, 12, 13);
    for (int64_t i = 0; i < size; ++i) {
      ASSERT_EQ(permutation.InverseAt(permutation.At(i)), i) << "size " << size;
    }
  }
}

TEST(KeyedPermutationTest, AtOfARangeEqualsAtOfEachIndex) {
  for (const int64_t size : {int64_t{1}, int64_t{2}, int64_t{17}, int64_t{64}, int64_t{65},
                             int64_t{1281167}, KeyedPermutation::kMaxSize}) {
    const KeyedPermutation permutation(size, 3, 4, 5);
    for (const int64_t first : {int64_t{0}, size / 3, size - 1, size}) {
      for (const int64_t count : {0, 1, 5, 16, 17, 100}) {
        if (count > size - first) continue;
        std::vector<int64_t> values(static_cast<size_t>(count));
        permutation.At(first, absl::MakeSpan(values));
        for (int64_t i = 0; i < count; ++i) {
          ASSERT_EQ(values[static_cast<size_t>(i)], permutation.At(first + i))
              << "size " << size << ", from " << first << ", " << count << " values";
        }
      }
    }
  }
}

// A table of all values would be too large, so the test checks a sample of places. If InverseAt()
// gives back each place from its value, no two places of the sample have the same value.
TEST(KeyedPermutationTest, InverseUndoesAtForHugeSizes) {
  std::vector<int64_t> sizes = {1281167, 1000000007, KeyedPermutation::kMaxSize};
  for (int bits = 20; bits < 62; ++bits) {
    for (const int64_t off : {-1, 0, 1}) sizes.push_back((int64_t{1} << bits) + off);
  }
  for (const int64_t size : sizes) {
    const KeyedPermutation permutation(size, 99, 7);
    for (int64_t k = 0; k < 64; ++k) {
      // Takes both ends, and places spread between them.
      const int64_t i = k < 4 ? k : k < 8 ? size - 1 - (k - 4) : (size / 64) * k + k;
      const int64_t value = permutation.At(i);
      ASSERT_GE(value, 0);
      ASSERT_LT(value, size);
      ASSERT_EQ(permutation.InverseAt(value), i) << "size " << size;
      ASSERT_EQ(permutation.At(permutation.InverseAt(i)), i) << "size " << size;
    }
  }
}

TEST(KeyedPermutationTest, EachPartOfTheKeyCounts) {
  const std::vector<int64_t> base = Values(KeyedPermutation(100, 1, 1, 1));
  EXPECT_NE(Values(KeyedPermutation(100, 2, 1, 1)), base);
  EXPECT_NE(Values(KeyedPermutation(100, 1 + (uint64_t{1} << 32), 1, 1)), base);
  EXPECT_NE(Values(KeyedPermutation(100, 1, 2, 1)), base);
  EXPECT_NE(Values(KeyedPermutation(100, 1, 1 + (int64_t{1} << 40), 1)), base);
  EXPECT_NE(Values(KeyedPermutation(100, 1, 1, 2)), base);
  EXPECT_EQ(Values(KeyedPermutation(100, 1, 1, 1)), base);
}

// For the sizes 101 and 100 the network has the same width. If the size were not in the key, the
// two orders would be nearly the same, except that the longer one also has the value 100.
TEST(KeyedPermutationTest, SizeIsPartOfTheKey) {
  const std::vector<int64_t> smaller = Values(KeyedPermutation(100, 1, 1));
  const std::vector<int64_t> larger = Values(KeyedPermutation(101, 1, 1));
  int same = 0;
  for (int i = 0; i < 100; ++i) same += smaller[i] == larger[i];
  EXPECT_LT(same, 6);  // Poisson with mean 1: 4 sigma.
}

// Over many keys every value is equally likely in every place. This is hardest for small sizes,
// because the halves of the network then have only one to three bits. The test is chi-squared with
// (size - 1)^2 degrees of freedom.
TEST(KeyedPermutationTest, EveryValueIsEquallyLikelyInEveryPlace) {
  for (const int64_t size : {2, 3, 5, 8, 12, 16, 17, 31, 32, 33}) {
    const int keys = 20000;
    std::vector<int> seen(size * size);
    for (int key = 0; key < keys; ++key) {
      const KeyedPermutation permutation(size, /*seed=*/key, /*epoch=*/0);
      for (int64_t i = 0; i < size; ++i) ++seen[i * size + permutation.At(i)];
    }
    const double expected = static_cast<double>(keys) / size;
    double chi2 = 0;
    for (const int n : seen) chi2 += (n - expected) * (n - expected) / expected;
    const double freedom = static_cast<double>((size - 1) * (size - 1));
    EXPECT_LT(chi2, freedom + 4 * std::sqrt(2 * freedom)) << "size " << size;
  }
}

// The values at neighbouring places must be independent. The test counts the pairs (value at 0,
// value at 1) over many keys.
TEST(KeyedPermutationTest, NeighboursAreIndependent) {
  for (const int64_t size : {4, 5, 8, 13, 32, 33}) {
    const int keys = 200000;
    std::vector<int> seen(size * size);
    for (int key = 0; key < keys; ++key) {
      const KeyedPermutation permutation(size, /*seed=*/1, /*epoch=*/key);
      ++seen[permutation.At(0) * size + permutation.At(1)];
    }
    const double expected = static_cast<double>(keys) / (size * (size - 1));
    double chi2 = 0;
    for (int64_t a = 0; a < size; ++a) {
      for (int64_t b = 0; b < size; ++b) {
        if (a == b) {
          EXPECT_EQ(seen[a * size + b], 0);
          continue;
        }
        const double off = seen[a * size + b] - expected;
        chi2 += off * off / expected;
      }
    }
    const double freedom = static_cast<double>(size * (size - 1) - 1);
    EXPECT_LT(chi2, freedom + 4 * std::sqrt(2 * freedom)) << "size " << size;
  }
}

// The values decide the content of feeds: see core/random/README.md.
TEST(KeyedPermutationTest, ValuesArePinned) {
  EXPECT_EQ(Values(KeyedPermutation(10, 1, 2, 3)),
            (std::vector<int64_t>{3, 5, 9, 7, 4, 0, 2, 1, 8, 6}));
  EXPECT_EQ(KeyedPermutation(1281167, 42, 0).At(0), 605963);
  EXPECT_EQ(KeyedPermutation(KeyedPermutation::kMaxSize, 42, 0).At(0), 4578661708738264061);
}

TEST(KeyedPermutationDeathTest, OutOfRangeIsTheCallersBug) {
  EXPECT_DEATH(KeyedPermutation(0, 1, 1), "size >= 1");
  EXPECT_DEATH(KeyedPermutation(KeyedPermutation::kMaxSize + 1, 1, 1), "size <= kMaxSize");
  EXPECT_DEATH(KeyedPermutation(5, 1, 1).At(5), "index < size_");
  EXPECT_DEATH(KeyedPermutation(5, 1, 1).InverseAt(-1), "value >= 0");
  int64_t values[3];
  EXPECT_DEATH(KeyedPermutation(5, 1, 1).At(-1, absl::MakeSpan(values)), "first >= 0");
  EXPECT_DEATH(KeyedPermutation(5, 1, 1).At(3, absl::MakeSpan(values)), "size_ - first");
}

}  // namespace
}  // namespace systole
