#include "client/emulator/array/pe_grid.h"

#include <cmath>

#include "client/emulator/array/flush_scope.h"
#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/array/wild_operands.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

// Calls `check` on every instruction set.
template <typename Check>
void OnEveryTarget(const Check& check) {
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    const FlushScope flush;
    check();
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

// The weights are 1 to 20 in row 0, and 0 in row 1. So row 1 only passes on the sums of row 0.
TEST(PeGridTest, AStreamedOperandMovesRightAndItsSumsMoveDownOnePePerCycle) {
  OnEveryTarget([] {
    constexpr int64_t kColumns = 20;  // With 20 columns the row ends within a vector.
    PeGrid grid(2, kColumns);
    for (int64_t c = 0; c < kColumns; ++c) {
      grid.shift_depth(c) = 1;
      grid.top_shadow(c) = static_cast<float>(c + 1);
    }
    grid.StreamCycle(/*loading=*/true);
    for (int64_t diagonal = 0; diagonal <= kColumns; ++diagonal) grid.TakeShadow(diagonal);
    grid.left(0) = 3;
    grid.StreamCycle(/*loading=*/false);
    grid.left(0) = 0;
    for (int64_t c = 0; c <= kColumns + 1; ++c) {
      for (int64_t i = 0; i < kColumns; ++i) {
        EXPECT_EQ(grid.At(0, i).a, i == c ? 3 : 0) << c << " " << i;
        EXPECT_EQ(grid.At(0, i).sum, i == c ? 3 * (i + 1) : 0) << c << " " << i;
        EXPECT_EQ(grid.bottom(i), i == c - 1 ? 3 * (i + 1) : 0) << c << " " << i;
      }
      grid.StreamCycle(/*loading=*/false);
    }
  });
}

// The weights are 5 (upper PE) and 7 (lower PE). The operand 2 reaches the lower PE in the same
// cycle as the sum 3 * 5.
TEST(PeGridTest, ASumMovesDownAndAddsOneProductPerRow) {
  OnEveryTarget([] {
    PeGrid grid(2, 1);
    grid.shift_depth(0) = 2;
    grid.top_shadow(0) = 7;
    grid.StreamCycle(/*loading=*/true);
    grid.top_shadow(0) = 5;
    grid.StreamCycle(/*loading=*/true);
    EXPECT_EQ(grid.At(0, 0).shadow, 5);
    EXPECT_EQ(grid.At(1, 0).shadow, 7);
    EXPECT_EQ(grid.At(0, 0).b, 0);
    grid.TakeShadow(0);
    grid.TakeShadow(1);
    grid.left(0) = 3;
    grid.StreamCycle(/*loading=*/false);
    EXPECT_EQ(grid.At(0, 0).sum, 15);
    grid.left(0) = 0;
    grid.left(1) = 2;
    grid.StreamCycle(/*loading=*/false);
    EXPECT_EQ(grid.bottom(0), 15 + 14);
    EXPECT_EQ(grid.At(0, 0).sum, 0);
  });
}

TEST(PeGridTest, ShadowWeightsShiftOnlyInRowsAboveTheShiftDepth) {
  OnEveryTarget([] {
    PeGrid grid(3, 18);
    for (int64_t c = 0; c < 18; ++c) grid.shift_depth(c) = static_cast<int32_t>(c % 4);
    for (int64_t cycle = 1; cycle <= 3; ++cycle) {
      for (int64_t c = 0; c < 18; ++c) grid.top_shadow(c) = static_cast<float>(cycle);
      grid.StreamCycle(/*loading=*/true);
    }
    for (int64_t c = 0; c < 18; ++c) {
      for (int64_t r = 0; r < 3; ++r) {
        EXPECT_EQ(grid.At(r, c).shadow, r < c % 4 ? 3 - r : 0) << r << " " << c;
      }
    }
  });
}

TEST(PeGridTest, TakeShadowReachesOneDiagonalAndNothingOutside) {
  PeGrid grid(2, 3);
  for (int64_t c = 0; c < 3; ++c) {
    grid.shift_depth(c) = 2;
    grid.top_shadow(c) = 1;
  }
  grid.StreamCycle(/*loading=*/true);
  grid.StreamCycle(/*loading=*/true);
  for (const int64_t outside : {-1, 4, 100}) grid.TakeShadow(outside);
  for (int64_t diagonal = 0; diagonal <= 4; ++diagonal) {
    for (int64_t r = 0; r < 2; ++r) {
      for (int64_t c = 0; c < 3; ++c) EXPECT_EQ(grid.At(r, c).b, r + c < diagonal ? 1 : 0);
    }
    grid.TakeShadow(diagonal);
  }
}

TEST(PeGridTest, StationarySumsGrowAndThenLeaveFromTheBottom) {
  OnEveryTarget([] {
    PeGrid grid(2, 1);
    grid.left(0) = 2;
    grid.top_b(0) = 3;
    grid.AccumulateCycle();  // PE (0, 0) has 2 * 3.
    grid.left(0) = 1;
    grid.left(1) = 10;
    grid.top_b(0) = 4;
    grid.AccumulateCycle();  // PE (0, 0) adds 1 * 4. PE (1, 0) has 10 * 3.
    grid.left(0) = grid.left(1) = 0;
    grid.top_b(0) = 0;
    EXPECT_EQ(grid.At(0, 0).sum, 10);
    EXPECT_EQ(grid.bottom(0), 30);
    EXPECT_EQ(grid.At(1, 0).b, 3);
    grid.DrainCycle();
    EXPECT_EQ(grid.bottom(0), 10);
    EXPECT_EQ(grid.At(1, 0).b, 4);
    EXPECT_EQ(grid.At(0, 0).a, 0);
    grid.DrainCycle();
    EXPECT_EQ(grid.bottom(0), 0);
  });
}

// The product 2^-130 is below the normal numbers, and the product 2^128 is above all f32 numbers.
// The sums to which they are added are normal. A product that is rounded before it is added would
// be lost.
TEST(PeGridTest, MultiplyAddRoundsOnce) {
  const float tiny = std::ldexp(1.0f, -65), smallest_normal = std::ldexp(1.0f, -126);
  const float huge = std::ldexp(1.0f, 127);
  OnEveryTarget([&] {
    for (const bool fused : {true, false}) {
      PeGrid grid(1, 1);
      grid.left(0) = smallest_normal;
      grid.top_b(0) = 1;
      grid.AccumulateCycle();
      grid.left(0) = fused ? tiny : 0;
      grid.top_b(0) = tiny;
      grid.AccumulateCycle();
      EXPECT_EQ(BitsOf(grid.bottom(0)), BitsOf(smallest_normal) + (fused ? 0x00080000u : 0u));
    }
    PeGrid grid(1, 1);
    grid.left(0) = -huge;
    grid.top_b(0) = 1;
    grid.AccumulateCycle();
    grid.top_b(0) = -2;
    grid.AccumulateCycle();  // The sum is -2^127 + 2^128 = 2^127.
    EXPECT_EQ(grid.bottom(0), huge);
  });
}

TEST(PeGridTest, SubnormalsAreFlushed) {
  OnEveryTarget([] {
    PeGrid grid(1, 1);
    grid.left(0) = std::ldexp(-1.0f, -100);
    grid.top_b(0) = std::ldexp(1.0f, -27);
    grid.AccumulateCycle();
    EXPECT_EQ(BitsOf(grid.bottom(0)), BitsOf(-0.0f));
  });
}

TEST(PeGridTest, ClearForgetsRegistersAndInputs) {
  PeGrid grid(1, 1);
  grid.left(0) = grid.top_b(0) = grid.top_shadow(0) = 1;
  grid.shift_depth(0) = 1;
  grid.AccumulateCycle();
  grid.StreamCycle(/*loading=*/true);
  grid.Clear();
  const FlushScope flush;
  grid.AccumulateCycle();
  grid.StreamCycle(/*loading=*/true);
  const PeGrid::Pe pe = grid.At(0, 0);
  EXPECT_EQ(pe.a, 0);
  EXPECT_EQ(pe.b, 0);
  EXPECT_EQ(pe.shadow, 0);
  EXPECT_EQ(pe.sum, 0);
}

}  // namespace
}  // namespace systole::emulator
