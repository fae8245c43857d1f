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

TEST(GemmCheckTest, SerialFoldsAgreeInValuesAndCycles) {
  const GemmShape gemms[] = {{1, 1, 1}, {4, 4, 4}, {16, 8, 8}, {7, 13, 9}, {25, 40, 33}};
  const ArrayShape arrays[] = {{1, 1}, {4, 4}, {8, 8}, {5, 3}, {3, 16}};
  for (const GemmShape& gemm : gemms) {
    for (const ArrayShape& array : arrays) {
      const auto check = CheckByStepping(gemm, array, Dataflow::kScaleSimWs);
      ASSERT_THAT(check, IsOk());
      EXPECT_THAT(AgreementOf(*check), IsOk()) << gemm.m << " " << array.rows;
      EXPECT_EQ(check->values, gemm.m * gemm.n);
    }
  }
}

// The golden value of SCALE-Sim's own test, from an array that was stepped.
TEST(GemmCheckTest, SteppingGivesTheGoldenCycles) {
  const auto check = CheckByStepping({256, 256, 128}, {32, 32}, Dataflow::kScaleSimWs);
  ASSERT_THAT(check, IsOk());
  EXPECT_EQ(check->stepped_cycles, 11199);
  EXPECT_THAT(AgreementOf(*check), IsOk());
}

TEST(GemmCheckTest, OneFoldOfWsDbAgrees) {
  const auto check = CheckByStepping({8, 16, 16}, {16, 16}, Dataflow::kWsDb);
  ASSERT_THAT(check, IsOk());
  EXPECT_EQ(check->stepped_cycles, 16 + 8 + 16 + 16 - 2);
  EXPECT_THAT(AgreementOf(*check), IsOk());
}

TEST(GemmCheckTest, WhatTheArrayCannotStepIsRefused) {
  EXPECT_THAT(CheckByStepping({8, 17, 16}, {16, 16}, Dataflow::kWsDb),
              IsInvalid(AllOf(HasSubstr("over 2 folds"), HasSubstr("scalesim-ws"))));
  EXPECT_THAT(CheckByStepping({4, 4, 4}, {4, 4}, Dataflow::kScaleSimOs),
              IsInvalid(HasSubstr("scalesim-os cannot be stepped")));
  EXPECT_THAT(CheckByStepping({4, 4, 4}, {4, 4}, Dataflow::kScaleSimIs),
              IsInvalid(HasSubstr("scalesim-is cannot be stepped")));
  EXPECT_THAT(CheckByStepping({0, 4, 4}, {4, 4}, Dataflow::kScaleSimWs),
              IsInvalid(HasSubstr("M is 0")));
}

// Refused before anything is allocated.
TEST(GemmCheckTest, SizesThatWouldTakeTooMuchAreRefused) {
  EXPECT_THAT(CheckByStepping({1 << 14, 1 << 14, 1}, {4, 4}, Dataflow::kScaleSimWs),
              IsInvalid(HasSubstr("more than 67108864 numbers")));
  EXPECT_THAT(CheckByStepping({1, 1, 1}, {kLargestGemmSize, 2}, Dataflow::kScaleSimWs),
              IsInvalid(HasSubstr("numbers, too many to step")));
  EXPECT_THAT(CheckByStepping({8192, 8192, 8192}, {128, 128}, Dataflow::kScaleSimWs),
              IsInvalid(HasSubstr("are too many to step")));
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
