#include "core/metrics/metric.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace systole {

MetricUnit UnitOf(absl::string_view name) {
  if (absl::EndsWith(name, "_bytes")) return MetricUnit::kBytes;
  if (absl::EndsWith(name, "_seconds")) return MetricUnit::kSeconds;
  if (absl::EndsWith(name, "_ratio")) return MetricUnit::kRatio;
  return MetricUnit::kCount;
}

std::optional<double> FindMetric(const std::vector<MetricReading>& readings, absl::string_view name,
                                 absl::string_view label_value) {
  for (const MetricReading& reading : readings) {
    if (reading.name != name) continue;
    for (const MetricValue& value : reading.values) {
      if (value.label_value == label_value) return value.value;
    }
  }
  return std::nullopt;
}

std::string PrometheusName(absl::string_view prefix, const MetricReading& reading) {
  return absl::StrCat(prefix, reading.name, reading.kind == MetricKind::kCounter ? "_total" : "");
}

std::optional<std::vector<MetricReading>> RatesBetween(const std::vector<MetricReading>& before,
                                                       const std::vector<MetricReading>& after,
                                                       double seconds) {
  if (!(seconds > 0)) return std::nullopt;
  std::vector<MetricReading> rates;
  for (const MetricReading& reading : after) {
    if (reading.kind != MetricKind::kCounter) continue;
    MetricReading rate = reading;
    for (MetricValue& value : rate.values) {
      const double grown =
          value.value - FindMetric(before, reading.name, value.label_value).value_or(0);
      if (grown < 0) return std::nullopt;
      value.value = grown / seconds;
    }
    rates.push_back(std::move(rate));
  }
  return rates;
}

}  // namespace systole
