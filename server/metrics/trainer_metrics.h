// The metrics of trainers' waits. These metrics have another prefix than a server's own metrics,
// because their numbers come from clients, and several servers may report the same trainer.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_METRICS_TRAINER_METRICS_H_
#define SYSTOLE_SERVER_METRICS_TRAINER_METRICS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "core/metrics/metric.h"
#include "server/streams/trainer_waits.h"

namespace systole {

// For PrometheusName().
inline constexpr absl::string_view kTrainerMetricPrefix = "systole_";

std::vector<MetricReading> ReadTrainerMetrics(const TrainerTotals& totals);

}  // namespace systole

#endif  // SYSTOLE_SERVER_METRICS_TRAINER_METRICS_H_
