// Metrics in Python's own types.
//
// Thread-safe: no state. The caller holds the GIL.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_METRIC_VALUES_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_METRIC_VALUES_H_

#include <vector>

#include "core/metrics/metric.h"
#include "core/metrics/metric_family.h"
#include "nanobind/nanobind.h"

namespace systole::python {

// Returns a dict from each metric's name to its value. For a metric with a label, the value is a
// dict from each value of the label to a number.
nanobind::dict MetricsDict(const std::vector<MetricReading>& metrics);

// (name, kind, help, [(name, labels, value), ..]) for each family. A family has the same time
// series as in Prometheus' text form (core/metrics/exposition.h).
nanobind::list FamiliesList(const std::vector<MetricFamily>& families);

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_METRIC_VALUES_H_
