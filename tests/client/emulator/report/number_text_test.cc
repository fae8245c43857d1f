#include "client/emulator/report/number_text.h"

#include <limits>

#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

TEST(NumberTextTest, ThreeDigitsAndAPrefix) {
  EXPECT_EQ(NumberText(0.0123456, Unit::kSeconds), "12.3 ms");
  EXPECT_EQ(NumberText(4.5e-7, Unit::kSeconds), "450 ns");
  EXPECT_EQ(NumberText(1.13e9, Unit::kBytes), "1.13 GB");
  EXPECT_EQ(NumberText(7e11, Unit::kBytesPerSecond), "700 GB/s");
  EXPECT_EQ(NumberText(2.29e13, Unit::kFlopsPerSecond), "22.9 TFLOP/s");
  EXPECT_EQ(NumberText(8.18e9, Unit::kFlops), "8.18 GFLOP");
  EXPECT_EQ(NumberText(65.71, Unit::kFlopsPerByte), "65.7 FLOP/B");
  EXPECT_EQ(NumberText(0.9177, Unit::kFraction), "91.8 %");
  EXPECT_EQ(NumberText(0.125, Unit::kNone), "0.125");
}

TEST(NumberTextTest, RoundingUpTakesTheNextPrefix) {
  EXPECT_EQ(NumberText(0.00099996, Unit::kSeconds), "1.00 ms");
  EXPECT_EQ(NumberText(999600, Unit::kBytes), "1.00 MB");
  EXPECT_EQ(NumberText(999.4, Unit::kBytes), "999 B");
  EXPECT_EQ(NumberText(9.996, Unit::kCount), "10.0");
}

TEST(NumberTextTest, CountsAndLongTimesAreWholeAndGrouped) {
  EXPECT_EQ(NumberText(1234567, Unit::kCount), "1,234,567");
  EXPECT_EQ(NumberText(999, Unit::kCount), "999");
  EXPECT_EQ(NumberText(6688.25, Unit::kCount), "6,688");
  EXPECT_EQ(NumberText(0.0004, Unit::kCount), "0.0004");
  EXPECT_EQ(NumberText(-1234.5, Unit::kCount), "-1,234");
  EXPECT_EQ(NumberText(43210.9, Unit::kSeconds), "43,211 s");
}

TEST(NumberTextTest, EdgesHaveText) {
  EXPECT_EQ(NumberText(0, Unit::kSeconds), "0 s");
  EXPECT_EQ(NumberText(0, Unit::kFraction), "0 %");
  EXPECT_EQ(NumberText(1, Unit::kFraction), "100 %");
  EXPECT_EQ(NumberText(std::numeric_limits<double>::quiet_NaN(), Unit::kSeconds), "n/a");
  EXPECT_EQ(NumberText(std::numeric_limits<double>::infinity(), Unit::kCount), "n/a");
  EXPECT_EQ(NumberText(3e21, Unit::kBytes), "3,000,000 PB");
}

TEST(TickTextTest, OneAxisHasOnePrefixAndAsManyDigitsAsItsStepNeeds) {
  EXPECT_EQ(TickText(0, 0.005, 0.02, Unit::kSeconds), "0 ms");
  EXPECT_EQ(TickText(0.005, 0.005, 0.02, Unit::kSeconds), "5 ms");
  EXPECT_EQ(TickText(0.5, 0.5, 2, Unit::kSeconds), "0.5 s");
  EXPECT_EQ(TickText(0.9992, 0.0002, 1, Unit::kFraction), "99.92 %");
  EXPECT_EQ(TickText(0.2, 0.2, 1, Unit::kFraction), "20 %");
  EXPECT_EQ(TickText(2000, 1000, 5000, Unit::kCount), "2,000");
}

}  // namespace
}  // namespace systole::emulator
