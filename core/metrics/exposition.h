// Shows metrics as Prometheus' text, or as a list of the series that this text has.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_METRICS_EXPOSITION_H_
#define SYSTOLE_CORE_METRICS_EXPOSITION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/metrics/metric.h"
#include "core/metrics/metric_family.h"

namespace systole {

// The format's name in `Content-Type`.
inline constexpr char kExpositionType[] = "text/plain; version=0.0.4; charset=utf-8";

// "gauge", "counter" or "histogram".
absl::string_view ExpositionKind(MetricKind kind);

// One number with its name and labels.
struct MetricSeries {
  std::string name;
  std::vector<MetricLabel> labels;
  double value = 0;
};

// The series of a family. Each sample of a histogram has several series: NAME_bucket with the label
// `le` counts the numbers up to a bound, NAME_sum adds them up, and NAME_count counts all of them.
std::vector<MetricSeries> SeriesOf(const MetricFamily& family);

// Families without a sample are left out.
std::string ExpositionOf(const std::vector<MetricFamily>& families);

}  // namespace systole

#endif  // SYSTOLE_CORE_METRICS_EXPOSITION_H_
