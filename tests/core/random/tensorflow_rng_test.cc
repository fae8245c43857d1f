#include "core/random/tensorflow_rng.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace systole {
namespace {

// TensorFlow's documentation gives these results for the seed [1, 2]: the six words that
// tf.random.split(seed, num=3) draws, from two blocks, and tf.random.fold_in(seed, 3) for an int32
// `data`. tests/golden/tensorflow has images that were made with more draws.
TEST(TensorFlowRngTest, DrawsTheWordsOfTensorFlowsDocumentedExamples) {
  TensorFlowRng rng({1, 2});
  for (const int32_t word : {1105988140, 1738052849, -335576002, 370444179, 10670227, -246211131}) {
    EXPECT_EQ(rng.NextU32(), static_cast<uint32_t>(word));
  }
  const TensorFlowSeed folded = FoldIn({1, 2}, 3);
  EXPECT_EQ(static_cast<uint32_t>(folded[0]), 1105988140u);
  EXPECT_EQ(folded[1], 3);
}

TEST(TensorFlowRngTest, FloatsAreTheLow23BitsOfAWord) {
  TensorFlowRng words({-7, int64_t{1} << 40});
  TensorFlowRng floats({-7, int64_t{1} << 40});
  for (int i = 0; i < 1000; ++i) {
    const float x = floats.UniformFloat();
    EXPECT_EQ(x, static_cast<float>(words.NextU32() & 0x7fffff) * 0x1p-23f);
    EXPECT_GE(x, 0);
    EXPECT_LT(x, 1);
  }
}

TEST(TensorFlowRngTest, IntsAreAWordModuloTheLimit) {
  TensorFlowRng words({3, 4});
  TensorFlowRng ints({3, 4});
  for (const int32_t limit : {1, 2, 7, 1 << 20, std::numeric_limits<int32_t>::max()}) {
    for (int i = 0; i < 9; ++i) {
      EXPECT_EQ(ints.UniformInt(limit), words.NextU32() % static_cast<uint32_t>(limit));
    }
  }
}

TEST(TensorFlowRngTest, BothSeedWordsAndTheirUpperHalvesChangeTheDraw) {
  const TensorFlowSeed seeds[] = {
      {1, 2}, {2, 1}, {1, 3}, {1 + (int64_t{1} << 32), 2}, {1, 2 + (int64_t{1} << 32)}, {-1, 2}};
  for (const TensorFlowSeed& one : seeds) {
    for (const TensorFlowSeed& other : seeds) {
      EXPECT_EQ(TensorFlowRng(one).NextU64() == TensorFlowRng(other).NextU64(), one == other);
    }
  }
}

TEST(TensorFlowRngTest, FoldInDrawsTheFirstSeedAndKeepsTheDataAsTheSecond) {
  const TensorFlowSeed folded = FoldIn({5, 6}, -9);
  EXPECT_EQ(folded[0], static_cast<int64_t>(TensorFlowRng({5, 6}).NextU64()));
  EXPECT_EQ(folded[1], -9);
}

TEST(TensorFlowRngDeathTest, ALimitOfZeroIsTheCallersBug) {
  EXPECT_DEATH(TensorFlowRng({1, 2}).UniformInt(0), "limit > 0");
}

}  // namespace
}  // namespace systole
