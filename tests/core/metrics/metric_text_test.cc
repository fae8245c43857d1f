#include "core/metrics/metric_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/metrics/shop.h"

namespace systole {
namespace {

constexpr Shop kBusy = {.visits = 110,
                        .guests = 3,
                        .cash = 40,
                        .cards = 2,
                        .stored_bytes = 12'500'000,
                        .open_seconds = 7.5};

std::string Json(const std::vector<MetricReading>& readings) {
  JsonWriter json;
  json.BeginObject();
  AppendMetrics(readings, json);
  return json.EndObject().text();
}

TEST(MetricTextTest, EveryMetricHasALineWithItsUnit) {
  EXPECT_EQ(MetricsText(ReadShop(kBusy)),
            "  visits  110\n"
            "  guests  3\n"
            "  sales   40 in cash, 2 by card\n"
            "  stored  12.5 MB\n"
            "  open    7.50 s\n");
}

TEST(MetricTextTest, ARatioHasTwoDecimals) {
  EXPECT_EQ(MetricsText({{.name = "busy_ratio", .values = {{.value = 0.256}}}}),
            "  busy ratio  0.26\n");
}

TEST(MetricTextTest, ARateFollowsEachCounterThatGrew) {
  const auto rates = RatesBetween(ReadShop({.visits = 100, .cards = 1}),
                                  ReadShop({.visits = 110, .cards = 2, .open_seconds = 1}), 2);
  EXPECT_EQ(MetricsText(ReadShop(kBusy), *rates),
            "  visits  110 (5.0/s)\n"
            "  guests  3\n"
            "  sales   40 in cash, 2 by card (0.5/s)\n"
            "  stored  12.5 MB\n"
            "  open    7.50 s (0.50 s/s)\n");
}

TEST(MetricTextTest, OnlyGaugesAreShownWhenTheyAreZero) {
  EXPECT_EQ(MetricsText(ReadShop({})),
            "  guests  0\n"
            "  stored  0.0 MB\n");
}

TEST(MetricTextTest, JsonHasEveryValueByName) {
  EXPECT_EQ(Json(ReadShop(kBusy)), R"({"visits":110,"guests":3,"sales":{"in_cash":40,"by_card":2},)"
                                   R"("stored_bytes":12500000,"open_seconds":7.5})");
  EXPECT_EQ(Json(ReadShop({.visits = 1'000'000, .stored_bytes = int64_t{1} << 60})),
            R"({"visits":1000000,"guests":0,"sales":{"in_cash":0,"by_card":0},)"
            R"("stored_bytes":1152921504606846976,"open_seconds":0})");
}

TEST(MetricTextTest, MetricsWithoutValuesAreZeroOrEmptyInJson) {
  EXPECT_EQ(Json({{.name = "none"}, {.name = "parts", .label = "by"}}), R"({"none":0,"parts":{}})");
}

TEST(MetricTextTest, TheTableListsNamesAndHelpOfEachMetric) {
  EXPECT_EQ(MetricsTable("shop_", ReadShop({})),
            "| name | for Prometheus | what |\n"
            "|---|---|---|\n"
            "| `visits` | `shop_visits_total` | People who came in. |\n"
            "| `guests` | `shop_guests` | People who are in. |\n"
            "| `sales` | `shop_sales_total{paid}` | What was sold. `paid`: in_cash, by_card (of "
            "any bank). |\n"
            "| `stored_bytes` | `shop_stored_bytes` | What lies there. |\n"
            "| `open_seconds` | `shop_open_seconds_total` | How long it was open. |\n");
}

}  // namespace
}  // namespace systole
