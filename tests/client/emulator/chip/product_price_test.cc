#include "client/emulator/chip/product_price.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/chip/toy_chip.h"

namespace systole::emulator {
namespace {

using testing::HasSubstr;

// The array is 4 x 4 at 1 MHz.
TEST(ProductPriceTest, OneProductCostsWhatTheCycleModelSays) {
  const absl::StatusOr<Op> op = PriceProduct({.gemm = {5, 6, 8}}, ToyChip(), Dataflow::kWsDb);
  ASSERT_THAT(op, IsOk());
  EXPECT_EQ(op->kind, OpKind::kGemm);
  EXPECT_EQ(op->tiles, 4);
  EXPECT_EQ(op->cycles, 30);
  EXPECT_DOUBLE_EQ(op->macs, 240);
  EXPECT_DOUBLE_EQ(op->matrix_s, 30e-6);
}

// 10 products of 2 tiles are 20 tiles of 5 rows without a gap. They take 4 + 19 * 5 + 5 + 6 cycles.
TEST(ProductPriceTest, RepeatedProductsFollowWithoutAGap) {
  const absl::StatusOr<Op> op =
      PriceProduct({.gemm = {5, 3, 8}, .repeats = 10}, ToyChip(), Dataflow::kWsDb);
  ASSERT_THAT(op, IsOk());
  EXPECT_EQ(op->tiles, 20);
  EXPECT_EQ(op->cycles, 110);
  EXPECT_DOUBLE_EQ(op->macs, 1200);
  EXPECT_EQ(op->gemm.k, 3);
}

// Each of the 10 products has 2 folds of 2 * 4 + 4 + 5 - 2 = 15 cycles. A product takes one cycle
// less than the sum of its folds: 29.
TEST(ProductPriceTest, RepeatedScaleSimWsProductsRunOneAfterAnother) {
  const absl::StatusOr<Op> op =
      PriceProduct({.gemm = {5, 3, 8}, .repeats = 10}, ToyChip(), Dataflow::kScaleSimWs);
  ASSERT_THAT(op, IsOk());
  EXPECT_EQ(op->tiles, 20);
  EXPECT_EQ(op->cycles, 290);
}

// Two units share 20 tiles, so the 10 tiles of each take 4 + 9 * 5 + 5 + 6 cycles.
TEST(ProductPriceTest, AllUnitsOfACoreShareTheTilesOfAProduct) {
  v1::Chip chip = ToyChip();
  chip.set_matrix_units_per_core(2);
  const absl::StatusOr<Op> op =
      PriceProduct({.gemm = {5, 3, 8}, .repeats = 10}, chip, Dataflow::kWsDb);
  ASSERT_THAT(op, IsOk());
  EXPECT_EQ(op->cycles, 60);
}

TEST(ProductPriceTest, TooLargeRepeatedProductsAreRefused) {
  EXPECT_THAT(
      PriceProduct({.gemm = {1, 1 << 20, 1}, .repeats = 1 << 22}, ToyChip(), Dataflow::kWsDb),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4194304 products")));
  EXPECT_THAT(
      PriceProduct({.gemm = {int64_t{1} << 40, int64_t{1} << 20, 1}, .repeats = 1 << 20}, ToyChip(),
                   Dataflow::kScaleSimWs),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cycles, want at most 1e+12")));
}

}  // namespace
}  // namespace systole::emulator
