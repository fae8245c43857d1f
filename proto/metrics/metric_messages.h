// Readings of metrics as the messages of ServerStatus, and back. Help texts are not sent.
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

// The most values that an answer may have. The limit keeps lookups short: code that looks for one
// value searches all values.
inline constexpr int kMaxMetricValues = 4096;

void AddMetrics(const std::vector<MetricReading>& readings, v1::ServerStatusResponse& answer);

// The readings in the answer of the server at `address`. Every `help` is empty.
//   ResourceExhausted  the answer has more than kMaxMetricValues values. The message names the
//                      server.
absl::StatusOr<std::vector<MetricReading>> MetricsOf(const v1::ServerStatusResponse& answer,
                                                     absl::string_view address);

}  // namespace systole

#endif  // SYSTOLE_PROTO_METRICS_METRIC_MESSAGES_H_
