#include "client/emulator/report/axis.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

using testing::ElementsAre;

std::vector<std::string> Labels(const Axis& axis) {
  std::vector<std::string> labels;
  for (const Tick& tick : axis.ticks()) {
    if (!tick.label.empty()) labels.push_back(tick.label);
  }
  return labels;
}

TEST(AxisTest, LinearIsWidenedToWholeTicks) {
  const Axis axis = Axis::Linear(0, 0.187, Unit::kSeconds);
  EXPECT_THAT(Labels(axis), ElementsAre("0 ms", "50 ms", "100 ms", "150 ms", "200 ms"));
  EXPECT_EQ(axis.from(), 0);
  EXPECT_EQ(axis.to(), 0.2);
}

TEST(AxisTest, LinearExactAxisKeepsItsEnds) {
  const Axis axis = Axis::LinearExact(-0.5, 7.5, Unit::kCount, 8, /*integral=*/true);
  EXPECT_THAT(Labels(axis), ElementsAre("0", "1", "2", "3", "4", "5", "6", "7"));
  EXPECT_EQ(axis.from(), -0.5);
  EXPECT_EQ(axis.to(), 7.5);
}

TEST(AxisTest, IntegralTicksAreNeverCloserThanOne) {
  EXPECT_THAT(Labels(Axis::LinearExact(0, 2, Unit::kCount, 6, /*integral=*/true)),
              ElementsAre("0", "1", "2"));
}

TEST(AxisTest, TicksOfTenthsDoNotDrift) {
  EXPECT_THAT(Labels(Axis::Linear(0, 1, Unit::kFraction, 10)),
              ElementsAre("0 %", "10 %", "20 %", "30 %", "40 %", "50 %", "60 %", "70 %", "80 %",
                          "90 %", "100 %"));
}

TEST(AxisTest, LogAxisSpansWholeDecadesAndLabelsEach) {
  const Axis axis = Axis::Log(3.2, 800, Unit::kFlopsPerByte);
  EXPECT_THAT(Labels(axis), ElementsAre("1 FLOP/B", "10 FLOP/B", "100 FLOP/B", "1,000 FLOP/B"));
  EXPECT_EQ(axis.ticks().size(), 4 + 3 * 8);  // Each of three decades has eight more lines within.
}

TEST(AxisTest, ValuesLieInProportion) {
  Axis linear = Axis::LinearExact(10, 30, Unit::kCount);
  linear.Place(100, 300);
  EXPECT_DOUBLE_EQ(linear.At(10), 100);
  EXPECT_DOUBLE_EQ(linear.At(15), 150);
  EXPECT_DOUBLE_EQ(linear.At(30), 300);
  Axis log = Axis::Log(1, 10000, Unit::kCount);
  log.Place(400, 0);  // This axis points up.
  EXPECT_NEAR(log.At(100), 200, 1e-3);
  EXPECT_NEAR(log.At(1000), 100, 1e-3);
}

TEST(AxisTest, ValuesOutsideTheSpanLieAtTheNearerEnd) {
  Axis axis = Axis::LinearExact(0, 1, Unit::kCount);
  axis.Place(0, 50);
  EXPECT_EQ(axis.At(-3), 0);
  EXPECT_EQ(axis.At(7), 50);
}

TEST(AxisTest, AnInvalidOrEmptyRangeStillGivesAnAxisWithASpan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Axis::Linear(nan, 1, Unit::kCount).to(), 1);
  EXPECT_EQ(Axis::Linear(inf, -inf, Unit::kCount).to(), 1);
  EXPECT_EQ(Axis::Linear(0, 0, Unit::kCount).to(), 1);
  EXPECT_EQ(Axis::LinearExact(5, 5, Unit::kCount).to(), 10);
  EXPECT_EQ(Axis::Log(0, 5, Unit::kCount).from(), 1);
  EXPECT_EQ(Axis::Log(100, 100, Unit::kCount).to(), 1000);
}

}  // namespace
}  // namespace systole::emulator
