#include "core/metrics/metric_family.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/metrics/shop.h"

namespace systole {
namespace {

TEST(MetricFamilyTest, ReadingsHavePrometheusNamesAndALabelForEachPart) {
  const std::vector<MetricReading> readings = ReadShop({.visits = 7, .cash = 3, .cards = 4});
  const std::vector<MetricFamily> families = FamiliesOf("shop_", readings);
  ASSERT_EQ(families.size(), readings.size());
  EXPECT_EQ(families[0].name, "shop_visits_total");
  EXPECT_EQ(families[0].kind, MetricKind::kCounter);
  EXPECT_EQ(families[0].help, "People who came in.");
  ASSERT_EQ(families[0].samples.size(), 1u);
  EXPECT_TRUE(families[0].samples[0].labels.empty());
  EXPECT_EQ(families[0].samples[0].value, 7);
  ASSERT_EQ(families[2].samples.size(), readings[2].values.size());
  EXPECT_EQ(families[2].samples[1].labels[0].name, "paid");
  EXPECT_EQ(families[2].samples[1].labels[0].value, readings[2].values[1].label_value);
}

TEST(MetricFamilyTest, ATableHasNamesLabelsAndHelp) {
  EXPECT_EQ(
      FamiliesTable(
          {{.name = "a_total", .help = "A.", .samples = {{.labels = {{"x", "1"}, {"y", "2"}}}}},
           {.name = "b", .help = "B.", .samples = {{}}}}),
      "| name | what |\n|---|---|\n| `a_total{x,y}` | A. |\n| `b` | B. |\n");
}

}  // namespace
}  // namespace systole
