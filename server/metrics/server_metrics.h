// The metrics of a server, a line each. ServerStatus, and so `systole status`, and the table in
// README.md have them all.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_METRICS_SERVER_METRICS_H_
#define SYSTOLE_SERVER_METRICS_SERVER_METRICS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/cache/value_cache.h"
#include "core/engine/step_engine.h"
#include "core/metrics/metric.h"
#include "server/door/door.h"
#include "server/streams/service_counters.h"

namespace systole {

// For PrometheusName().
inline constexpr absl::string_view kServerMetricPrefix = "systole_server_";

// Where a server's numbers are: taken all at one time, but for those of the service.
struct ServerNumbers {
  const ServiceCounters& service;
  StepEngine::Stats engine;
  DoorCounters door;
  ValueCacheStats cache;
  int64_t masked_examples = 0;  // Of all datasets.
};

// The metrics of the server itself. What its cache keeps is core/cache's.
std::vector<MetricLine<ServerNumbers>> ServerMetrics();

// All of a server's metrics, its cache's among them. Also asks the kernel about this process.
std::vector<MetricReading> ReadServerMetrics(const ServerNumbers& numbers);

}  // namespace systole

#endif  // SYSTOLE_SERVER_METRICS_SERVER_METRICS_H_
