// Metrics under Prometheus' names, for monitors. FamiliesOf() makes them from MetricReadings. Other
// code makes those that a MetricReading cannot hold: metrics with several labels, and histograms.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_METRICS_METRIC_FAMILY_H_
#define SYSTOLE_CORE_METRICS_METRIC_FAMILY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/metrics/histogram.h"
#include "core/metrics/metric.h"

namespace systole {

struct MetricLabel {
  std::string name;
  // One of a few values that this program or its operator chose. It is never text from a peer or a
  // file, because a monitor keeps a series for each value.
  std::string value;
};

struct MetricSample {
  std::vector<MetricLabel> labels;
  double value = 0;
  HistogramReading histogram;  // Used instead of `value` if the family's kind is kHistogram.
};

// All series of one name. Their labels have the same names.
struct MetricFamily {
  std::string name;  // By Prometheus' rules, such as "systole_server_steps_served_total".
  MetricKind kind = MetricKind::kGauge;
  std::string help;
  std::vector<MetricSample> samples;
};

// The readings, with the names of PrometheusName().
std::vector<MetricFamily> FamiliesOf(absl::string_view prefix,
                                     const std::vector<MetricReading>& readings);

// A table in Markdown: name, labels, help. MetricsTable() makes such a table of readings.
std::string FamiliesTable(const std::vector<MetricFamily>& families);

}  // namespace systole

#endif  // SYSTOLE_CORE_METRICS_METRIC_FAMILY_H_
