#include "core/page/number_text.h"

#include <limits>

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(NumberTextTest, NumbersHaveThreeDigitsAndAUnitPrefix) {
  EXPECT_EQ(NumberText(0.0123456, NumberUnit::kSeconds), "12.3 ms");
  EXPECT_EQ(NumberText(4.5e-7, NumberUnit::kSeconds), "450 ns");
  EXPECT_EQ(NumberText(1.13e9, NumberUnit::kBytes), "1.13 GB");
  EXPECT_EQ(NumberText(7e11, NumberUnit::kBytesPerSecond), "700 GB/s");
  EXPECT_EQ(NumberText(2.29e13, NumberUnit::kFlopsPerSecond), "22.9 TFLOP/s");
  EXPECT_EQ(NumberText(8.18e9, NumberUnit::kFlops), "8.18 GFLOP");
  EXPECT_EQ(NumberText(65.71, NumberUnit::kFlopsPerByte), "65.7 FLOP/B");
  EXPECT_EQ(NumberText(0.9177, NumberUnit::kFraction), "91.8 %");
  EXPECT_EQ(NumberText(0.125, NumberUnit::kNone), "0.125");
}

TEST(NumberTextTest, RoundingUpTakesTheNextPrefix) {
  EXPECT_EQ(NumberText(0.00099996, NumberUnit::kSeconds), "1.00 ms");
  EXPECT_EQ(NumberText(999600, NumberUnit::kBytes), "1.00 MB");
  EXPECT_EQ(NumberText(999.4, NumberUnit::kBytes), "999 B");
  EXPECT_EQ(NumberText(9.996, NumberUnit::kCount), "10.0");
}

TEST(NumberTextTest, LargeCountsAndTimesAreWholeWithThousandsSeparators) {
  EXPECT_EQ(NumberText(1234567, NumberUnit::kCount), "1,234,567");
  EXPECT_EQ(NumberText(999, NumberUnit::kCount), "999");
  EXPECT_EQ(NumberText(6688.25, NumberUnit::kCount), "6,688");
  EXPECT_EQ(NumberText(0.0004, NumberUnit::kCount), "0.0004");
  EXPECT_EQ(NumberText(-1234.5, NumberUnit::kCount), "-1,234");
  EXPECT_EQ(NumberText(43210.9, NumberUnit::kSeconds), "43,211 s");
}

TEST(NumberTextTest, ZeroOneNanInfinityAndHugeNumbersHaveText) {
  EXPECT_EQ(NumberText(0, NumberUnit::kSeconds), "0 s");
  EXPECT_EQ(NumberText(0, NumberUnit::kFraction), "0 %");
  EXPECT_EQ(NumberText(1, NumberUnit::kFraction), "100 %");
  EXPECT_EQ(NumberText(std::numeric_limits<double>::quiet_NaN(), NumberUnit::kSeconds), "n/a");
  EXPECT_EQ(NumberText(std::numeric_limits<double>::infinity(), NumberUnit::kCount), "n/a");
  EXPECT_EQ(NumberText(3e21, NumberUnit::kBytes), "3,000,000 PB");
}

TEST(TickTextTest, OneAxisHasOnePrefixAndAsManyDigitsAsItsStepNeeds) {
  EXPECT_EQ(TickText(0, 0.005, 0.02, NumberUnit::kSeconds), "0 ms");
  EXPECT_EQ(TickText(0.005, 0.005, 0.02, NumberUnit::kSeconds), "5 ms");
  EXPECT_EQ(TickText(0.5, 0.5, 2, NumberUnit::kSeconds), "0.5 s");
  EXPECT_EQ(TickText(0.9992, 0.0002, 1, NumberUnit::kFraction), "99.92 %");
  EXPECT_EQ(TickText(0.2, 0.2, 1, NumberUnit::kFraction), "20 %");
  EXPECT_EQ(TickText(2000, 1000, 5000, NumberUnit::kCount), "2,000");
}

}  // namespace
}  // namespace systole
