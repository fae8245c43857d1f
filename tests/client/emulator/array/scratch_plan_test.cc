#include "client/emulator/array/scratch_plan.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

// The plan has room for the whole matrix B with padded columns (64 * 300 floats), a block of A
// (192 * 128), a tile (12 * 32), and slack (4 * 64).
TEST(ScratchPlanTest, ProductPacksAllOfBAndABlockOfA) {
  ScratchPlan plan(Numerics::kExact);
  plan.AddMultiply(300, 33);
  EXPECT_EQ(plan.bytes(), (64 * 300 + 192 * 128 + 12 * 32 + 4 * 64) * 4);
}

TEST(ScratchPlanTest, TransposedProductPacksASlabOfBoth) {
  ScratchPlan plan(Numerics::kExact);
  plan.AddMultiplyTransposed(13, 100);
  EXPECT_EQ(plan.bytes(), (128 * 24 + 128 * 128 + 128 + 12 * 32 + 4 * 64) * 4);
}

TEST(ScratchPlanTest, EachScratchArrayIsAsLargeAsItsLargestProductNeeds) {
  ScratchPlan plan(Numerics::kExact);
  plan.AddMultiply(300, 33);
  plan.AddMultiplyTransposed(1200, 1);
  plan.AddMultiply(10, 10);
  EXPECT_EQ(plan.bytes(), (128 * 1200 + 64 * 300 + 32 + 12 * 32 + 4 * 64) * 4);
}

TEST(ScratchPlanTest, FastNumericsNeedRoomForTwoMoreBlocks) {
  ScratchPlan exact(Numerics::kExact), fast(Numerics::kFast);
  for (ScratchPlan* plan : {&exact, &fast}) plan->AddMultiply(100000, 1);
  EXPECT_EQ(fast.bytes() - exact.bytes(), 2 * (256 * 100000 + 64) * 2);
}

// The products are the largest that model files may ask for.
TEST(ScratchPlanTest, LargestProductsDoNotOverflow) {
  ScratchPlan plan(Numerics::kFast);
  const int64_t most = int64_t{1} << 28;
  plan.AddMultiply(most, 1);
  plan.AddMultiply(1, most);
  plan.AddMultiplyTransposed(most, most);
  EXPECT_GT(plan.bytes(), 128 * most * 4);
  EXPECT_LT(plan.bytes(), std::numeric_limits<int64_t>::max() >> 20);
}

}  // namespace
}  // namespace systole::emulator
