#include "core/plan/output_costs.h"

#include <initializer_list>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Field;

LapTimes::Times TimesOf(int all, std::initializer_list<std::pair<int, int>> parts) {
  LapTimes::Times times;
  times.all = absl::Microseconds(all);
  for (const auto& [part, time] : parts) {
    times.parts[static_cast<size_t>(part)] = absl::Microseconds(time);
  }
  return times;
}

auto Is(int output, int transform) {
  return AllOf(Field("output", &OutputCosts::Costliest::output, output),
               Field("transform", &OutputCosts::Costliest::transform, transform));
}

TEST(OutputCostsTest, WithoutMeasurementsOnlyASingleOutputIsTheCostliest) {
  EXPECT_THAT(OutputCosts(3).Find(), Is(-1, -1));
  EXPECT_THAT(OutputCosts(1).Find(), Is(0, -1));
  EXPECT_THAT(OutputCosts(0).Find(), Is(-1, -1));
}

TEST(OutputCostsTest, FindsTheCostliestTransformOfTheCostliestOutput) {
  OutputCosts costs(2);
  costs.Add(0, TimesOf(50, {{0, 1}, {3, 49}}));
  costs.Add(1, TimesOf(60, {{0, 20}, {1, 30}, {31, 10}}));
  EXPECT_THAT(costs.Find(), Is(1, 1));
  costs.Add(1, TimesOf(60, {{31, 60}}));
  EXPECT_THAT(costs.Find(), Is(1, 31));
  costs.Add(0, TimesOf(100, {{0, 100}}));
  EXPECT_THAT(costs.Find(), Is(0, 0));
}

TEST(OutputCostsTest, NoTransformIsNamedIfTimeOutsideTransformsIsLonger) {
  OutputCosts costs(1);
  costs.Add(0, TimesOf(60, {{0, 10}, {1, 20}}));
  EXPECT_THAT(costs.Find(), Is(0, -1));
  costs.Add(0, TimesOf(20, {{1, 20}}));
  EXPECT_THAT(costs.Find(), Is(0, 1));
}

}  // namespace
}  // namespace systole
