// Readings of metrics as the messages of ServerStatus, and back. What a metric means does not
// travel.
//
// Thread-safe: no state.
#ifndef SYSTOLE_PROTO_METRICS_METRIC_MESSAGES_H_
#define SYSTOLE_PROTO_METRICS_METRIC_MESSAGES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/metrics/metric.h"
#include "systole/v1/service.pb.h"

namespace systole {

// The most values that an answer may hold. Whoever looks them up goes through them all.
inline constexpr int kMaxMetricValues = 4096;

void AddMetrics(const std::vector<MetricReading>& readings, v1::ServerStatusResponse& answer);

// Those that the server at `address` has told. Every `help` is empty.
//   ResourceExhausted  more than kMaxMetricValues; names the server.
absl::StatusOr<std::vector<MetricReading>> MetricsOf(const v1::ServerStatusResponse& answer,
                                                     absl::string_view address);

}  // namespace systole

#endif  // SYSTOLE_PROTO_METRICS_METRIC_MESSAGES_H_
