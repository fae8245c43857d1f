// Readings of metrics, for people and for programs. No code here depends on a particular metric.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_METRICS_METRIC_TEXT_H_
#define SYSTOLE_CORE_METRICS_METRIC_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/json/json_writer.h"
#include "core/metrics/metric.h"

namespace systole {

// A line for each metric, indented by two spaces: "  payload        12.5 MB (3.1 MB/s)". Counters
// and parts that are 0 are left out, and so are rates of 0. `rates` comes from RatesBetween(), or
// is empty.
std::string MetricsText(const std::vector<MetricReading>& readings,
                        const std::vector<MetricReading>& rates = {});

// Adds a field for each metric to the JSON object that is open in `json`. A metric with a label
// becomes an object with a number for each value of the label.
void AppendMetrics(const std::vector<MetricReading>& readings, JsonWriter& json);

// A table in Markdown, with the meaning of each metric, for the document that lists them. `prefix`
// is that of PrometheusName().
std::string MetricsTable(absl::string_view prefix, const std::vector<MetricReading>& readings);

}  // namespace systole

#endif  // SYSTOLE_CORE_METRICS_METRIC_TEXT_H_
