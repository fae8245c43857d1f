#include "client/python/extension/metric_values.h"

#include <cstdint>
#include <string>

#include "core/metrics/exposition.h"
#include "nanobind/stl/string.h"

namespace nb = nanobind;

namespace systole::python {
namespace {

nb::object MetricNumber(const MetricReading& metric, const MetricValue& value) {
  switch (UnitOf(metric.name)) {
    case MetricUnit::kSeconds:
    case MetricUnit::kRatio:
      return nb::float_(value.value);
    case MetricUnit::kCount:
    case MetricUnit::kBytes:
      break;
  }
  return nb::int_(static_cast<int64_t>(value.value));
}

}  // namespace

nb::dict MetricsDict(const std::vector<MetricReading>& metrics) {
  nb::dict dict;
  for (const MetricReading& metric : metrics) {
    nb::dict parts;
    for (const MetricValue& value : metric.values) {
      parts[nb::str(value.label_value.c_str())] = MetricNumber(metric, value);
    }
    const nb::str name(metric.name.c_str());
    if (metric.label.empty()) {
      dict[name] = parts[nb::str("")];
    } else {
      dict[name] = parts;
    }
  }
  return dict;
}

nb::list FamiliesList(const std::vector<MetricFamily>& families) {
  nb::list list;
  for (const MetricFamily& family : families) {
    nb::list samples;
    for (const MetricSeries& series : SeriesOf(family)) {
      nb::dict labels;
      for (const MetricLabel& label : series.labels) {
        labels[nb::str(label.name.c_str())] = label.value;
      }
      samples.append(nb::make_tuple(series.name, labels, series.value));
    }
    list.append(nb::make_tuple(family.name, std::string(ExpositionKind(family.kind)), family.help,
                               samples));
  }
  return list;
}

}  // namespace systole::python
