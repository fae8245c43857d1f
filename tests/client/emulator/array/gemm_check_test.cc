#include "client/emulator/array/gemm_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::HasSubstr;

MATCHER_P(IsInvalid, message, "") {
  return testing::ExplainMatchResult(StatusIs(absl::StatusCode::kInvalidArgument, message), arg,
                                     result_listener);
}

constexpr Dataflow kAllDataflows[] = {Dataflow::kWsDb, Dataflow::kScaleSimOs, Dataflow::kScaleSimWs,
                                      Dataflow::kScaleSimIs};

TEST(GemmCheckTest, SteppingMatchesExpectedValuesAndCyclesForEveryDataflow) {
  const GemmShape gemms[] = {{1, 1, 1}, {4, 4, 4}, {16, 8, 8}, {7, 13, 9}, {25, 40, 33}};
  const ArrayShape arrays[] = {{1, 1}, {4, 4}, {8, 8}, {5, 3}, {3, 16}, {40, 33}};
  for (const GemmShape& gemm : gemms) {
    for (const ArrayShape& array : arrays) {
      for (const Dataflow dataflow : kAllDataflows) {
        const auto check = CheckByStepping(gemm, array, dataflow);
        ASSERT_THAT(check, IsOk());
        EXPECT_THAT(AgreementOf(*check), IsOk())
            << DataflowName(dataflow) << " " << gemm.m << " " << array.rows;
        EXPECT_EQ(check->values, gemm.m * gemm.n);
      }
    }
  }
}

// The golden values of SCALE-Sim's own test must come from the stepped array too.
TEST(GemmCheckTest, SteppingGivesTheGoldenCycles) {
  const struct {
    Dataflow dataflow;
    int64_t cycles;
  } golden[] = {{Dataflow::kScaleSimOs, 10175},
                {Dataflow::kScaleSimWs, 11199},
                {Dataflow::kScaleSimIs, 14207}};
  for (const auto& g : golden) {
    const auto check = CheckByStepping({256, 256, 128}, {32, 32}, g.dataflow);
    ASSERT_THAT(check, IsOk());
    EXPECT_EQ(check->stepped_cycles, g.cycles) << DataflowName(g.dataflow);
    EXPECT_THAT(AgreementOf(*check), IsOk());
  }
}

// Tall products are split by rows, flat products by tiles. Several of the tiles add to the same
// sums.
TEST(GemmCheckTest, SteppingMatchesExpectedValuesAndCyclesForSeveralUnits) {
  const GemmShape gemms[] = {{40, 12, 10}, {3, 50, 17}, {1, 9, 1}, {7, 7, 7}, {2, 90, 4}};
  bool by_rows = false, by_tiles = false;
  for (const GemmShape& gemm : gemms) {
    for (const int64_t units : {1, 2, 3, 4, 100}) {
      const auto check = CheckByStepping(gemm, {4, 5}, Dataflow::kWsDb, units);
      ASSERT_THAT(check, IsOk());
      EXPECT_THAT(AgreementOf(*check), IsOk()) << gemm.m << " on " << units;
      const auto counted = CountCycles(gemm, {4, 5}, Dataflow::kWsDb, units);
      ASSERT_THAT(counted, IsOk());
      by_rows |= counted->split == UnitSplit::kRows;
      by_tiles |= counted->split == UnitSplit::kTiles;
    }
  }
  EXPECT_TRUE(by_rows && by_tiles);
}

TEST(GemmCheckTest, InputsThatTheCycleModelRefusesAreRefused) {
  EXPECT_THAT(CheckByStepping({0, 4, 4}, {4, 4}, Dataflow::kScaleSimWs),
              IsInvalid(HasSubstr("M is 0")));
  EXPECT_THAT(CheckByStepping({4, 4, 4}, {4, 4}, Dataflow::kScaleSimOs, 2),
              IsInvalid(HasSubstr("scalesim-os counts the cycles of one array, not of 2")));
}

// The sizes are refused before anything is allocated.
TEST(GemmCheckTest, SizesThatWouldTakeTooMuchAreRefused) {
  EXPECT_THAT(CheckByStepping({1 << 14, 1 << 14, 1}, {4, 4}, Dataflow::kScaleSimWs),
              IsInvalid(HasSubstr("more than 67108864 numbers")));
  EXPECT_THAT(CheckByStepping({1, 1, 1}, {kLargestGemmSize, 2}, Dataflow::kScaleSimWs),
              IsInvalid(HasSubstr("numbers, too many to compute cycle by cycle")));
  // The array has one column, but each row of registers is padded.
  EXPECT_THAT(CheckByStepping({1, 1, 1}, {1 << 25, 1}, Dataflow::kScaleSimWs),
              IsInvalid(HasSubstr("numbers, too many to compute cycle by cycle")));
  EXPECT_THAT(CheckByStepping({8192, 8192, 8192}, {128, 128}, Dataflow::kScaleSimWs),
              IsInvalid(HasSubstr("are too many to compute cycle by cycle")));
  // One array or a few could be stepped, but not one array for every row.
  EXPECT_THAT(CheckByStepping({1 << 14, 128, 128}, {128, 128}, Dataflow::kWsDb, 1 << 14),
              IsInvalid(HasSubstr("383 cycles of 16384 128x128 arrays")));
}

TEST(GemmCheckTest, DisagreementIsInternalAndNamesBothNumbers) {
  EXPECT_THAT(AgreementOf({.counted_cycles = 9, .stepped_cycles = 9, .values = 4}), IsOk());
  EXPECT_THAT(AgreementOf({.counted_cycles = 9, .stepped_cycles = 10, .values = 4}),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("took 10 cycles"), HasSubstr("says 9"))));
  EXPECT_THAT(
      AgreementOf({.counted_cycles = 9, .stepped_cycles = 9, .values = 4, .differing_values = 3}),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("3 of 4 values")));
}

}  // namespace
}  // namespace systole::emulator
