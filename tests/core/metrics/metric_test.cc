#include "core/metrics/metric.h"

#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/metrics/shop.h"

namespace systole {
namespace {

using testing::Optional;

TEST(MetricTest, AReadingHasNameKindHelpAndTheValueFromItsSource) {
  const std::vector<MetricReading> readings = ReadShop({.visits = 7, .cash = 3, .cards = 4});
  ASSERT_EQ(readings.size(), ShopMetrics().size());
  EXPECT_EQ(readings[0].name, "visits");
  EXPECT_EQ(readings[0].kind, MetricKind::kCounter);
  EXPECT_EQ(readings[0].help, "People who came in.");
  EXPECT_THAT(FindMetric(readings, "visits"), Optional(7));
  EXPECT_EQ(readings[2].label, "paid");
  EXPECT_THAT(FindMetric(readings, "sales", "by_card"), Optional(4));
}

TEST(MetricTest, FindMetricIsEmptyForAnUnknownNameOrPart) {
  const std::vector<MetricReading> readings = ReadShop({});
  EXPECT_EQ(FindMetric(readings, "visit"), std::nullopt);
  EXPECT_EQ(FindMetric(readings, "visits", "in_cash"), std::nullopt);
  EXPECT_EQ(FindMetric(readings, "sales"), std::nullopt);
}

TEST(MetricTest, TheUnitIsTheLastWordOfTheName) {
  EXPECT_EQ(UnitOf("stored_bytes"), MetricUnit::kBytes);
  EXPECT_EQ(UnitOf("open_seconds"), MetricUnit::kSeconds);
  EXPECT_EQ(UnitOf("busy_ratio"), MetricUnit::kRatio);
  EXPECT_EQ(UnitOf("visits"), MetricUnit::kCount);
  EXPECT_EQ(UnitOf("bytes_read"), MetricUnit::kCount);
}

TEST(MetricTest, OnlyCountersEndWithTotalInPrometheusNames) {
  const std::vector<MetricReading> readings = ReadShop({});
  EXPECT_EQ(PrometheusName("shop_", readings[0]), "shop_visits_total");
  EXPECT_EQ(PrometheusName("shop_", readings[3]), "shop_stored_bytes");
  EXPECT_EQ(PrometheusName("shop_", readings[4]), "shop_open_seconds_total");
}

TEST(MetricTest, CountersHaveRates) {
  const auto rates = RatesBetween(ReadShop({.visits = 10, .guests = 9, .cards = 1}),
                                  ReadShop({.visits = 15, .guests = 2, .cards = 4}), 2);
  ASSERT_TRUE(rates.has_value());
  EXPECT_THAT(FindMetric(*rates, "visits"), Optional(2.5));
  EXPECT_THAT(FindMetric(*rates, "sales", "by_card"), Optional(1.5));
  EXPECT_THAT(FindMetric(*rates, "sales", "in_cash"), Optional(0));
  EXPECT_EQ(FindMetric(*rates, "guests"), std::nullopt);
}

TEST(MetricTest, ADecreasedCounterOrAnEmptyIntervalGivesNoRates) {
  const std::vector<MetricReading> before = ReadShop({.visits = 10, .cards = 2});
  EXPECT_EQ(RatesBetween(before, ReadShop({.visits = 9, .cards = 2}), 1), std::nullopt);
  EXPECT_EQ(RatesBetween(before, ReadShop({.visits = 10, .cards = 1}), 1), std::nullopt);
  EXPECT_EQ(RatesBetween(before, before, 0), std::nullopt);
}

}  // namespace
}  // namespace systole
