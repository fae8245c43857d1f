#include "proto/metrics/metric_messages.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace systole {

void AddMetrics(const std::vector<MetricReading>& readings, v1::ServerStatusResponse& answer) {
  for (const MetricReading& reading : readings) {
    v1::Metric& metric = *answer.add_metrics();
    metric.set_name(reading.name);
    metric.set_kind(reading.kind == MetricKind::kCounter ? v1::Metric::COUNTER : v1::Metric::GAUGE);
    metric.set_label(reading.label);
    for (const MetricValue& value : reading.values) {
      v1::MetricValue& message = *metric.add_values();
      message.set_label_value(value.label_value);
      message.set_value(value.value);
    }
  }
}

absl::StatusOr<std::vector<MetricReading>> MetricsOf(const v1::ServerStatusResponse& answer,
                                                     absl::string_view address) {
  std::vector<MetricReading> readings;
  int values = 0;
  for (const v1::Metric& metric : answer.metrics()) {
    values += std::max(1, metric.values_size());
    if (values > kMaxMetricValues) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "server ", address, " sent more than ", kMaxMetricValues,
          " metric values, but no Systole server sends so many; check what listens there"));
    }
    MetricReading& reading = readings.emplace_back(MetricReading{
        .name = metric.name(),
        .kind = metric.kind() == v1::Metric::COUNTER ? MetricKind::kCounter : MetricKind::kGauge,
        .label = metric.label()});
    for (const v1::MetricValue& value : metric.values()) {
      reading.values.push_back({.label_value = value.label_value(), .value = value.value()});
    }
  }
  return readings;
}

}  // namespace systole
