#include "core/random/counter_rng.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "core/random/philox.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

// Random123 publishes these known answers.
TEST(PhiloxTest, MatchesPublishedVectors) {
  static_assert(Philox4x32({0, 0, 0, 0}, {0, 0}) ==
                PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRngTest, TheStreamFollowsTheDocumentedConstruction) {
  const uint64_t seed = 0x1122334455667788, record = 0x0a0b0c0d01020304, epoch = 5;
  const PhiloxBlock d = Philox4x32({0x01020304, 0x0a0b0c0d, 5, 0}, {0x55667788, 0x11223344});
  CounterRng rng(seed, epoch, record, /*purpose=*/9);
  for (uint32_t block = 0; block < 3; ++block) {
    for (const uint32_t word : Philox4x32({block, 9, d[0], d[1]}, {d[2], d[3]})) {
      EXPECT_EQ(rng.NextU32(), word);
    }
  }
}

TEST(CounterRngTest, EachPartOfTheKeyChoosesAnotherStream) {
  std::set<uint64_t> first_draws;
  int streams = 0;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, ~uint64_t{0}}) {
    for (const int64_t epoch : {int64_t{0}, int64_t{1}, int64_t{1} << 40}) {
      for (const int64_t record : {int64_t{0}, int64_t{1}, int64_t{1} << 40}) {
        for (const uint32_t purpose : {0u, 1u, 0x80000000u}) {
          first_draws.insert(CounterRng(seed, epoch, record, purpose).NextU64());
          ++streams;
        }
      }
    }
  }
  EXPECT_EQ(first_draws.size(), streams);
}

TEST(CounterRngTest, CopyRepeatsTheDrawsToCome) {
  CounterRng rng(1, 2, 3, 4);
  rng.NextU32();
  CounterRng copy = rng;
  for (int i = 0; i < 9; ++i) EXPECT_EQ(rng.NextU32(), copy.NextU32());
}

TEST(CounterRngTest, U64IsTwoWordsLowFirst) {
  CounterRng words(1, 2, 3, 4), pair(1, 2, 3, 4);
  const uint64_t low = words.NextU32(), high = words.NextU32();
  EXPECT_EQ(pair.NextU64(), low | (high << 32));
}

TEST(CounterRngTest, DrawCountDoesNotDependOnTheRange) {
  for (const int64_t end :
       {int64_t{1}, int64_t{7}, int64_t{1} << 33, std::numeric_limits<int64_t>::max()}) {
    CounterRng rng(1, 2, 3, 4), plain(1, 2, 3, 4);
    rng.UniformInt(0, end);
    plain.NextU64();
    EXPECT_EQ(rng.NextU32(), plain.NextU32()) << end;
  }
}

TEST(CounterRngTest, UniformIntStaysInRangeAtTheExtremes) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  CounterRng rng(1, 2, 3, 4);
  bool negative = false, positive = false;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(rng.UniformInt(-3, -2), -3);
    EXPECT_EQ(rng.UniformInt(kMax - 1, kMax), kMax - 1);
    const int64_t wide = rng.UniformInt(kMin, kMax);
    EXPECT_LT(wide, kMax);
    (wide < 0 ? negative : positive) = true;
  }
  EXPECT_TRUE(negative && positive);
}

// The test is chi-squared with 9 degrees of freedom: mean 9, standard deviation sqrt(18).
TEST(CounterRngTest, UniformIntIsUniformAcrossRecords) {
  std::vector<int> seen(10);
  const int draws = 100000;
  for (int record = 0; record < draws; ++record) {
    ++seen[CounterRng(42, 0, record, 1).UniformInt(5, 15) - 5];
  }
  double chi2 = 0;
  for (const int n : seen) chi2 += (n - draws / 10.0) * (n - draws / 10.0) / (draws / 10.0);
  EXPECT_LT(chi2, 9 + 4 * std::sqrt(18.0));
}

TEST(CounterRngTest, UniformFloatIsIn01WithMean05) {
  double sum = 0;
  const int draws = 100000;
  CounterRng rng(7, 0, 0, 0);
  for (int i = 0; i < draws; ++i) {
    const float value = rng.UniformFloat();
    ASSERT_GE(value, 0.0f);
    ASSERT_LT(value, 1.0f);
    ASSERT_EQ(value * 0x1p24f, std::floor(value * 0x1p24f));  // A multiple of 2^-24.
    sum += value;
  }
  EXPECT_NEAR(sum / draws, 0.5, 4 * std::sqrt(1.0 / 12 / draws));
}

TEST(CounterRngTest, UniformFloatIsTheTop24BitsOfAWord) {
  CounterRng rng(1, 2, 3, 4), plain(1, 2, 3, 4);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(rng.UniformFloat() * 0x1p24f, plain.NextU32() >> 8);
}

// The values decide the content of feeds: see core/random/README.md.
TEST(CounterRngTest, ValuesArePinned) {
  CounterRng rng(1, 2, 3, 4);
  EXPECT_EQ(rng.NextU64(), 14779911552828989521u);
  EXPECT_EQ(rng.UniformInt(0, 1000000), 859279);
}

TEST(CounterRngDeathTest, EmptyRangeIsTheCallersBug) {
  CounterRng rng(1, 2, 3, 4);
  EXPECT_DEATH(rng.UniformInt(3, 3), "begin < end");
}

}  // namespace
}  // namespace systole
