#include "proto/metrics/metric_messages.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/metrics/shop.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::HasSubstr;

TEST(MetricMessagesTest, MetricReadingsSurviveConversionToAMessageAndBack) {
  const std::vector<MetricReading> sent =
      ReadShop({.visits = 4, .cash = 1, .cards = 3, .open_seconds = 0.5});
  v1::ServerStatusResponse answer;
  AddMetrics(sent, answer);
  const absl::StatusOr<std::vector<MetricReading>> got = MetricsOf(answer, "a:1");
  ASSERT_THAT(got, IsOk());
  ASSERT_EQ(got->size(), sent.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ((*got)[i].name, sent[i].name);
    EXPECT_EQ((*got)[i].kind, sent[i].kind);
    EXPECT_EQ((*got)[i].label, sent[i].label);
    ASSERT_EQ((*got)[i].values.size(), sent[i].values.size());
    for (size_t k = 0; k < sent[i].values.size(); ++k) {
      EXPECT_EQ((*got)[i].values[k].label_value, sent[i].values[k].label_value);
      EXPECT_EQ((*got)[i].values[k].value, sent[i].values[k].value);
    }
  }
}

TEST(MetricMessagesTest, TooManyMetricsOrValuesInAnAnswerAreRefused) {
  v1::ServerStatusResponse many;
  for (int i = 0; i < kMaxMetricValues; ++i) many.add_metrics();
  EXPECT_THAT(MetricsOf(many, "a:1"), IsOk());
  many.add_metrics();
  EXPECT_THAT(MetricsOf(many, "a:1").status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("server a:1 sent more")));
  v1::ServerStatusResponse wide;
  for (int i = 0; i <= kMaxMetricValues; ++i) {
    if (i == 0) wide.add_metrics();
    wide.mutable_metrics(0)->add_values();
  }
  EXPECT_THAT(MetricsOf(wide, "a:1").status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("server a:1")));
}

}  // namespace
}  // namespace systole
