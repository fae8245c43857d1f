// The table of a server's metrics. ServerStatus, `systole status` and the table in README.md show
// all of them.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_METRICS_SERVER_METRICS_H_
#define SYSTOLE_SERVER_METRICS_SERVER_METRICS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/cache/value_cache.h"
#include "core/dataset/damage_cause.h"
#include "core/engine/step_engine.h"
#include "core/metrics/metric.h"
#include "core/metrics/metric_family.h"
#include "server/listener/listener.h"
#include "server/metrics/where_counts.h"
#include "server/otlp/span_exporter.h"
#include "server/streams/service_counters.h"

namespace systole {

// For PrometheusName().
inline constexpr absl::string_view kServerMetricPrefix = "systole_server_";

// What a server's metrics are read from. All numbers but `service` were read at the same moment.
struct ServerNumbers {
  const ServiceCounters& service;
  StepEngine::Stats engine;
  ListenerCounters listener;
  ValueCacheStats cache;
  MaskedByCause masked_examples = {};  // In all datasets.
  int64_t max_streams = 0;
  int64_t datasets_served = 0;
  int64_t datasets_refused = 0;
  SpanCounts spans;
  WhereCounts wheres;
};

// The metrics of the server itself. The metrics of its cache are in core/cache.
std::vector<MetricLine<ServerNumbers>> ServerMetrics();

// All of a server's metrics, including those of its cache. The function asks the kernel for numbers
// about this process, such as its memory.
std::vector<MetricReading> ReadServerMetrics(const ServerNumbers& numbers);

// systole_server_step_wait_seconds: a histogram, so it is no line of the table. `step_waits` comes
// from StepEngine::Stats.
MetricFamily StepWaitFamily(const HistogramReading& step_waits);

}  // namespace systole

#endif  // SYSTOLE_SERVER_METRICS_SERVER_METRICS_H_
