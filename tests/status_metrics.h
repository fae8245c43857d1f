// Reads and adds the metrics of a server's status, by name.
#ifndef SYSTOLE_TESTS_STATUS_METRICS_H_
#define SYSTOLE_TESTS_STATUS_METRICS_H_

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "systole/v1/service.pb.h"

namespace systole {

// Returns the value of a metric. If there is none, fails the test and returns -1.
inline double MetricOf(const v1::ServerStatusResponse& status, absl::string_view name,
                       absl::string_view label_value = "") {
  for (const v1::Metric& metric : status.metrics()) {
    if (metric.name() != name) continue;
    for (const v1::MetricValue& value : metric.values()) {
      if (value.label_value() == label_value) return value.value();
    }
  }
  ADD_FAILURE() << "no metric " << name << " '" << label_value << "' in " << status.DebugString();
  return -1;
}

// Adds a metric without a label.
inline void AddMetric(v1::ServerStatusResponse& status, absl::string_view name, double value,
                      v1::Metric::Kind kind = v1::Metric::COUNTER) {
  v1::Metric& metric = *status.add_metrics();
  metric.set_name(std::string(name));
  metric.set_kind(kind);
  metric.add_values()->set_value(value);
}

// Adds a value to a counter with a label.
inline void AddMetricPart(v1::ServerStatusResponse& status, absl::string_view name,
                          absl::string_view label_value, double value) {
  v1::Metric* metric = nullptr;
  for (v1::Metric& known : *status.mutable_metrics()) {
    if (known.name() == name) metric = &known;
  }
  if (metric == nullptr) {
    metric = status.add_metrics();
    metric->set_name(std::string(name));
    metric->set_kind(v1::Metric::COUNTER);
    metric->set_label("reason");
  }
  v1::MetricValue& part = *metric->add_values();
  part.set_label_value(std::string(label_value));
  part.set_value(value);
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_STATUS_METRICS_H_
