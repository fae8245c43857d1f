#include "client/emulator/array/stepped_array.h"

#include <bit>
#include <cmath>
#include <vector>

#include "client/emulator/array/matrix_unit.h"
#include "core/numeric/bf16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

using testing::ElementsAre;

std::vector<uint16_t> Bf16(const std::vector<float>& values) {
  std::vector<uint16_t> out;
  for (const float value : values) out.push_back(RoundToBf16Flush(value));
  return out;
}

TEST(SteppedArrayTest, MultipliesASmallMatrixByHand) {
  // [1 2 3]   [1 2]   [22 28]
  // [4 5 6] * [3 4] = [49 64]
  //           [5 6]
  const auto a = Bf16({1, 2, 3, 4, 5, 6}), b = Bf16({1, 2, 3, 4, 5, 6});
  for (const int64_t rows : {1, 2, 3, 5}) {
    for (const int64_t columns : {1, 2, 4}) {
      std::vector<float> out(4);
      SteppedArray(rows, columns).Multiply(a.data(), b.data(), 2, 3, 2, out.data());
      EXPECT_THAT(out, ElementsAre(22, 28, 49, 64)) << rows << "x" << columns;
    }
  }
}

// R cycles of load and M + R + C - 2 of streaming per fold: the published cases with one fold.
TEST(SteppedArrayTest, OneFoldTakesThePublishedNumberOfCycles) {
  const struct {
    int64_t rows, columns, m, k, n, cycles;
  } cases[] = {
      {4, 4, 4, 4, 4, 14},
      {8, 8, 16, 8, 8, 38},
      {128, 128, 128, 128, 128, 510},
      {128, 128, 8, 128, 128, 390},
  };
  for (const auto& c : cases) {
    const std::vector<uint16_t> a(static_cast<size_t>(c.m * c.k)),
        b(static_cast<size_t>(c.k * c.n));
    std::vector<float> out(static_cast<size_t>(c.m * c.n));
    const SteppedArray::Cycles cycles =
        SteppedArray(c.rows, c.columns).Multiply(a.data(), b.data(), c.m, c.k, c.n, out.data());
    EXPECT_EQ(cycles.load + cycles.stream, c.cycles) << c.rows << " " << c.m;
  }
}

// SCALE-Sim charges serial folds ceil(K/R) * ceil(N/C) * (2R + C + M - 2): 16 x 110.
TEST(SteppedArrayTest, FoldsAreChargedOneAfterTheOther) {
  const std::vector<uint16_t> a(64 * 64), b(64 * 64);
  std::vector<float> out(64 * 64);
  const SteppedArray::Cycles cycles =
      SteppedArray(16, 16).Multiply(a.data(), b.data(), 64, 64, 64, out.data());
  EXPECT_EQ(cycles.load, 16 * 16);
  EXPECT_EQ(cycles.stream, 16 * (64 + 16 + 16 - 2));
  EXPECT_EQ(cycles.load + cycles.stream, 1760);
}

// The order shows: 2^24 + 1 + 1 is 2^24 if the ones come singly, 2^24 + 2 if they come as a sum.
TEST(SteppedArrayTest, HeightOfTheArrayIsTheSlabOfTheSum) {
  const auto a = Bf16({16777216.0f, 1, 1}), b = Bf16({1, 1, 1});
  float by_one_slab, by_slabs_of_one, by_two_slabs;
  SteppedArray(3, 1).Multiply(a.data(), b.data(), 1, 3, 1, &by_one_slab);
  SteppedArray(1, 1).Multiply(a.data(), b.data(), 1, 3, 1, &by_slabs_of_one);
  const auto turned = Bf16({16777216.0f, 0, 1, 1});
  const auto ones = Bf16({1, 1, 1, 1});
  SteppedArray(2, 1).Multiply(turned.data(), ones.data(), 1, 4, 1, &by_two_slabs);
  EXPECT_EQ(by_one_slab, 16777216.0f);
  EXPECT_EQ(by_slabs_of_one, 16777216.0f);
  EXPECT_EQ(by_two_slabs, 16777218.0f);
}

// A place that no weight uses must not turn a sum of -0 into +0 half-way.
TEST(SteppedArrayTest, UnusedPlacesChangeNoBitOfANegativeZero) {
  const float tiny = std::ldexp(1.0f, -70);
  const auto a = Bf16({1, tiny}), b = Bf16({0, -tiny});  // The second product is flushed to -0.
  float with_padding, without;
  SteppedArray(7, 3).Multiply(a.data(), b.data(), 1, 2, 1, &with_padding);
  MultiplyByDefinition(a.data(), b.data(), 1, 2, 1, 7, &without);
  EXPECT_EQ(std::bit_cast<uint32_t>(with_padding), std::bit_cast<uint32_t>(without));
}

}  // namespace
}  // namespace systole::emulator
