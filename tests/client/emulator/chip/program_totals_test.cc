#include "client/emulator/chip/program_totals.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/chip/toy_chip.h"

namespace systole::emulator {
namespace {

ChipProgram TwoRows() {
  ChipProgram program;
  program.layers = {{.name = "a"}, {.name = "b"}};
  return program;
}

// Of 3 s of vector work, 1 s of matrix work and 1 s of memory work cover 2 s. 1 s is left over.
TEST(ProgramTotalsTest, VectorTimeCountsOnlyBeyondMatrixAndMemoryTime) {
  ChipProgram program = TwoRows();
  program.ops = {
      {.kind = OpKind::kGemm, .layer = 0, .matrix_s = 1, .memory_s = 1, .vector_s = 3},
      {.kind = OpKind::kVector, .layer = 0, .memory_s = 2, .vector_s = 1},
  };
  AddUpTotals(ToyChip(), program);
  EXPECT_EQ(program.step.vector_s, 4);
  EXPECT_EQ(program.step.vector_excess_s, 1);
  EXPECT_EQ(program.step.seconds, 1 + 3 + 1);
  EXPECT_EQ(program.layers[0].seconds, 5);
  EXPECT_EQ(program.layers[0].bound, Bound::kVector);
}

TEST(ProgramTotalsTest, ALayerIsBoundByItsLongestTime) {
  ChipProgram program = TwoRows();
  program.ops = {
      {.kind = OpKind::kGemm, .layer = 0, .matrix_s = 3, .memory_s = 2, .vector_s = 1},
      {.kind = OpKind::kGemm, .layer = 1, .matrix_s = 1, .memory_s = 2, .vector_s = 1},
  };
  AddUpTotals(ToyChip(), program);
  EXPECT_EQ(program.layers[0].bound, Bound::kMatrix);
  EXPECT_EQ(program.layers[1].bound, Bound::kMemory);
}

TEST(ProgramTotalsTest, TransferTimesAreAddedUpByPurposeWithoutTheInfeed) {
  ChipProgram program = TwoRows();
  program.ops = {
      {.kind = OpKind::kInfeed, .bytes = 99, .transfer_s = 50},
      {.kind = OpKind::kVector, .layer = 0, .bytes = 7, .memory_s = 1},
      {.kind = OpKind::kAllReduce, .layer = 1, .bytes = 8, .transfer_s = 2},
      {.kind = OpKind::kCoreSum, .bytes = 9, .transfer_s = 3},
      {.kind = OpKind::kAllReduce, .bytes = 10, .transfer_s = 4},
  };
  AddUpTotals(ToyChip(), program);
  EXPECT_EQ(program.step.norm_all_reduce_s, 2);
  EXPECT_EQ(program.step.core_sum_s, 3);
  EXPECT_EQ(program.step.all_reduce_s, 4);
  EXPECT_EQ(program.step.memory_bytes, 7);
  EXPECT_EQ(program.step.seconds, 1 + 2 + 3 + 4);  // The infeed runs at the same time.
}

// Overlap acts on the sums of a whole step, so one layer's matrix time may hide another layer's
// memory time.
TEST(ProgramTotalsTest, OverlapActsOnTheWholeStep) {
  ChipProgram program = TwoRows();
  program.overlap = 1;
  program.ops = {
      {.kind = OpKind::kGemm, .layer = 0, .matrix_s = 5, .memory_s = 1},
      {.kind = OpKind::kGemm, .layer = 1, .matrix_s = 1, .memory_s = 3},
  };
  AddUpTotals(ToyChip(), program);
  EXPECT_EQ(program.step.compute_s, 6);
  program.layers = TwoRows().layers;
  program.step = {};
  program.overlap = 0.25;
  AddUpTotals(ToyChip(), program);
  EXPECT_EQ(program.step.compute_s, 6 + 0.75 * 4);
}

// 24 multiply-accumulates are done in 3 cycles of 16 places.
TEST(ProgramTotalsTest, UtilisationIsMacsDoneOverMacsPossibleInTheCycles) {
  ChipProgram program = TwoRows();
  program.ops = {{.kind = OpKind::kGemm, .layer = 0, .tiles = 2, .cycles = 3, .macs = 24}};
  AddUpTotals(ToyChip(), program);
  EXPECT_EQ(program.layers[0].utilisation, 0.5);
  EXPECT_EQ(program.layers[0].flops, 48);
  EXPECT_EQ(program.layers[0].tiles, 2);
  EXPECT_EQ(program.layers[1].utilisation, 0);
  EXPECT_EQ(program.layers[1].flops_per_byte(), 0);
  EXPECT_EQ(program.layers[1].flops_per_s(), 0);
}

}  // namespace
}  // namespace systole::emulator
