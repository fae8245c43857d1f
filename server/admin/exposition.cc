#include "server/admin/exposition.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "prometheus/client_metric.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"

namespace systole {
namespace {

prometheus::ClientMetric::Histogram Cumulative(const HistogramReading& reading) {
  prometheus::ClientMetric::Histogram histogram;
  histogram.sample_count = static_cast<uint64_t>(reading.count());
  histogram.sample_sum = reading.sum;
  uint64_t so_far = 0;
  for (size_t i = 0; i < reading.counts.size(); ++i) {
    so_far += static_cast<uint64_t>(reading.counts[i]);
    histogram.bucket.push_back({.cumulative_count = so_far,
                                .upper_bound = i < reading.bounds.size()
                                                   ? reading.bounds[i]
                                                   : std::numeric_limits<double>::infinity()});
  }
  return histogram;
}

prometheus::ClientMetric SeriesOf(MetricKind kind, const MetricSample& sample) {
  prometheus::ClientMetric series;
  for (const MetricLabel& label : sample.labels) series.label.push_back({label.name, label.value});
  switch (kind) {
    case MetricKind::kGauge:
      series.gauge.value = sample.value;
      break;
    case MetricKind::kCounter:
      series.counter.value = sample.value;
      break;
    case MetricKind::kHistogram:
      series.histogram = Cumulative(sample.histogram);
      break;
  }
  return series;
}

prometheus::MetricType TypeOf(MetricKind kind) {
  switch (kind) {
    case MetricKind::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricKind::kCounter:
      return prometheus::MetricType::Counter;
    case MetricKind::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

}  // namespace

std::string ExpositionOf(const std::vector<MetricFamily>& families) {
  std::vector<prometheus::MetricFamily> all;
  all.reserve(families.size());
  for (const MetricFamily& family : families) {
    if (family.samples.empty()) continue;
    prometheus::MetricFamily& next = all.emplace_back();
    next.name = family.name;
    next.help = family.help;
    next.type = TypeOf(family.kind);
    next.metric.reserve(family.samples.size());
    for (const MetricSample& sample : family.samples) {
      next.metric.push_back(SeriesOf(family.kind, sample));
    }
  }
  return prometheus::TextSerializer().Serialize(all);
}

}  // namespace systole
