#include "client/emulator/array/stepped_array.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "client/emulator/array/matrix_unit.h"
#include "core/numeric/bf16.h"
#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/array/wild_operands.h"
#include "tests/client/emulator/array/worked_examples.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::ElementsAre;

constexpr Dataflow kDataflows[] = {Dataflow::kWsDb, Dataflow::kScaleSimOs, Dataflow::kScaleSimWs,
                                   Dataflow::kScaleSimIs};

std::vector<uint16_t> Bf16(const std::vector<float>& values) {
  std::vector<uint16_t> out;
  for (const float value : values) out.push_back(RoundToBf16Flush(value));
  return out;
}

TEST(SteppedArrayTest, ASmallProductHasTheHandComputedValues) {
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

TEST(SteppedArrayTest, EveryDataflowGivesTheSameSmallProduct) {
  const auto a = Bf16({1, 2, 3, 4, 5, 6}), b = Bf16({1, 2, 3, 4, 5, 6});
  for (const Dataflow dataflow : kDataflows) {
    for (const int64_t rows : {1, 2, 3, 5}) {
      for (const int64_t columns : {1, 2, 4}) {
        std::vector<float> out(4, 99.0f);  // Multiply() clears these values.
        SteppedArray(rows, columns).Multiply(a.data(), b.data(), 2, 3, 2, out.data(), dataflow);
        EXPECT_THAT(out, ElementsAre(22, 28, 49, 64)) << DataflowName(dataflow) << " " << rows;
      }
    }
  }
}

// The cycles as SCALE-Sim counts them. SCALE-Sim gives the index of the last cycle, and leaves out
// the cycles that drain stationary sums.
int64_t ScaleSimCycles(const SteppedArray::Cycles& cycles) {
  return cycles.load + cycles.stream - 1;
}

// Examples with more rows are skipped. The last example takes minutes, and under a sanitizer the
// larger examples take a minute.
constexpr int64_t kMaxRows = kSanitized ? 1'000 : 100'000;

TEST(SteppedArrayTest, TakesTheCyclesOfTheWorkedExamples) {
  for (const WorkedExample& example : kWorkedExamples) {
    const auto [m, k, n] = example.gemm;
    if (m > kMaxRows) continue;
    SCOPED_TRACE(testing::Message() << example.array.rows << "x" << example.array.columns << " "
                                    << m << "," << k << "," << n);
    const std::vector<uint16_t> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n));
    std::vector<float> out(static_cast<size_t>(m * n));
    SteppedArray array(example.array.rows, example.array.columns);
    const auto cycles = [&, m = m, k = k, n = n](Dataflow dataflow) {
      return array.Multiply(a.data(), b.data(), m, k, n, out.data(), dataflow);
    };
    const SteppedArray::Cycles os = cycles(Dataflow::kScaleSimOs);
    EXPECT_EQ(ScaleSimCycles(os), example.os);
    EXPECT_EQ(os.total(), example.os_paper);
    EXPECT_EQ(ScaleSimCycles(cycles(Dataflow::kScaleSimWs)), example.ws);
    EXPECT_EQ(ScaleSimCycles(cycles(Dataflow::kScaleSimIs)), example.is);
    EXPECT_EQ(cycles(Dataflow::kWsDb).total(), example.ws_db);
  }
}

// On many shapes, with four dataflows and every instruction set, the array must give the bits of
// the exact loop and the cycles of the formulas. M may be below, at or above the array's number
// of rows R. A product may take one tile or many. Some operands are flushed, some overflow.
TEST(SteppedArrayTest, EqualsTheExactLoopAndTheFormulasOnRandomShapes) {
  constexpr int kShapes = kSanitized ? 100 : 500;
  std::mt19937 random(8);
  const auto up_to = [&random](int64_t n) { return 1 + static_cast<int64_t>(random() % n); };
  const std::vector<std::string> targets = SupportedSimdTargets();
  int shorter = 0, longer = 0, one_tile = 0;  // Cases of ws-db: M < R, M > R, one tile.
  for (int i = 0; i < kShapes; ++i) {
    const ArrayShape shape = {up_to(24), up_to(24)};
    const int64_t m = up_to(40), k = up_to(60), n = up_to(40);
    const auto wildness = static_cast<Wildness>(i % kWildnesses);
    const std::vector<uint16_t> a = WildOperands(m * k, wildness, random);
    const std::vector<uint16_t> b = WildOperands(k * n, wildness, random);
    std::vector<float> out(static_cast<size_t>(m * n));
    MultiplyByDefinition(a.data(), b.data(), m, k, n, shape.rows, out.data());
    const std::vector<uint32_t> slabs_of_rows = BitsOf(out);
    MultiplyByDefinition(a.data(), b.data(), m, k, n, k, out.data());
    const std::vector<uint32_t> one_slab = BitsOf(out);
    SteppedArray array(shape.rows, shape.columns);
    for (const Dataflow dataflow : kDataflows) {
      const absl::StatusOr<GemmCycles> counted = CountCycles({m, k, n}, shape, dataflow);
      ASSERT_THAT(counted, IsOk());
      for (const std::string& target : targets) {
        SCOPED_TRACE(testing::Message()
                     << "shape " << i << ": " << target << " " << DataflowName(dataflow) << " "
                     << shape.rows << "x" << shape.columns << " " << m << "," << k << "," << n);
        ASSERT_THAT(ForceSimdTarget(target), IsOk());
        const SteppedArray::Cycles cycles =
            array.Multiply(a.data(), b.data(), m, k, n, out.data(), dataflow);
        const bool sums_stay = dataflow == Dataflow::kScaleSimOs;
        ASSERT_EQ(BitsOf(out), sums_stay ? one_slab : slabs_of_rows);
        ASSERT_EQ(dataflow == Dataflow::kWsDb ? cycles.total() : ScaleSimCycles(cycles),
                  counted->cycles);
        ASSERT_EQ(cycles.drain, sums_stay ? counted->folds * shape.rows : 0);
      }
      if (dataflow == Dataflow::kWsDb) {
        one_tile += counted->folds == 1;
        shorter += counted->folds > 1 && m < shape.rows;
        longer += counted->folds > 1 && m > shape.rows;
      }
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
  EXPECT_GT(shorter, kShapes / 10);
  EXPECT_GT(longer, kShapes / 10);
  EXPECT_GT(one_tile, kShapes / 50);
}

// The first tile loads alone. Every later tile loads while the rows of the tile before stream.
TEST(SteppedArrayTest, OnlyTheFirstTileOfWsDbWaitsForItsWeights) {
  const std::vector<uint16_t> a(64 * 64), b(64 * 64);
  std::vector<float> out(64 * 64);
  SteppedArray array(16, 16);
  const auto back_to_back =
      array.Multiply(a.data(), b.data(), 64, 64, 64, out.data(), Dataflow::kWsDb);
  EXPECT_EQ(back_to_back.load, 16);
  EXPECT_EQ(back_to_back.stream, 15 * 64 + 64 + 16 + 16 - 2);
  const auto serial =
      array.Multiply(a.data(), b.data(), 64, 64, 64, out.data(), Dataflow::kScaleSimWs);
  EXPECT_EQ(serial.load, 16 * 16);
  EXPECT_EQ(serial.stream, 16 * (64 + 16 + 16 - 2));
}

// Several arrays that share the tiles of a product give the same bits as one array that takes all
// tiles.
TEST(SteppedArrayTest, RunningTilesInSeveralTurnsGivesTheSameBits) {
  std::mt19937 random(9);
  const int64_t m = 5, k = 20, n = 9;  // 5 x 3 tiles of 4 x 4.
  const std::vector<uint16_t> a = WildOperands(m * k, Wildness::kTame, random);
  const std::vector<uint16_t> b = WildOperands(k * n, Wildness::kTame, random);
  for (const Dataflow dataflow : {Dataflow::kWsDb, Dataflow::kScaleSimWs}) {
    std::vector<float> whole(m * n), shared(m * n);
    SteppedArray array(4, 4);
    array.Multiply(a.data(), b.data(), m, k, n, whole.data(), dataflow);
    for (const int64_t first : {0, 7, 14, 21}) {  // The turns take 7, 7, 1 and 0 tiles.
      array.Start({.a = a.data(),
                   .b = b.data(),
                   .shape = {m, k, n},
                   .out = shared.data(),
                   .dataflow = dataflow,
                   .first_tile = first,
                   .most_tiles = 7});
      while (array.Step()) {
      }
    }
    EXPECT_EQ(array.cycles().total(), 0);
    EXPECT_EQ(BitsOf(shared), BitsOf(whole)) << DataflowName(dataflow);
  }
}

// The result shows the order of the additions: 2^24 + 1 + 1 is 2^24 if the ones are added one by
// one, and 2^24 + 2 if their sum is added.
TEST(SteppedArrayTest, SumsAreAddedInSlabsOfTheArraysHeight) {
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

// A sum that stays in its PE is one slab, however long it is.
TEST(SteppedArrayTest, OutputStationaryAddsTheWholeSumTermByTerm) {
  const auto a = Bf16({16777216.0f, 0, 1, 1}), b = Bf16({1, 1, 1, 1});
  float chained, by_slabs_of_two;
  SteppedArray(2, 1).Multiply(a.data(), b.data(), 1, 4, 1, &chained, Dataflow::kScaleSimOs);
  SteppedArray(2, 1).Multiply(a.data(), b.data(), 1, 4, 1, &by_slabs_of_two, Dataflow::kWsDb);
  EXPECT_EQ(chained, 16777216.0f);
  EXPECT_EQ(by_slabs_of_two, 16777218.0f);
}

// A place of the array that no operand uses must not turn a sum of -0 into +0.
TEST(SteppedArrayTest, UnusedPlacesChangeNoBitOfANegativeZero) {
  const float tiny = std::ldexp(1.0f, -70);
  const auto a = Bf16({1, tiny}), b = Bf16({0, -tiny});  // The second product is flushed to -0.
  for (const Dataflow dataflow : kDataflows) {
    float with_padding, without;
    SteppedArray(7, 3).Multiply(a.data(), b.data(), 1, 2, 1, &with_padding, dataflow);
    MultiplyByDefinition(a.data(), b.data(), 1, 2, 1, 7, &without);
    EXPECT_EQ(BitsOf(with_padding), BitsOf(without)) << DataflowName(dataflow);
  }
}

}  // namespace
}  // namespace systole::emulator
