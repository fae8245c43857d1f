// The table of a feed's metrics: the numbers of FeedClientStats. `systole feed`, Feed.stats() in
// Python and the table in README.md show all of them.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_STEP_FEED_METRICS_H_
#define SYSTOLE_CLIENT_STEP_FEED_METRICS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "client/step/feed_client_stats.h"
#include "core/metrics/metric.h"

namespace systole {

// For PrometheusName().
inline constexpr absl::string_view kFeedMetricPrefix = "systole_feed_";

std::vector<MetricLine<FeedClientStats>> FeedMetrics();

inline std::vector<MetricReading> ReadFeedMetrics(const FeedClientStats& stats) {
  return ReadMetrics(FeedMetrics(), stats);
}

}  // namespace systole

#endif  // SYSTOLE_CLIENT_STEP_FEED_METRICS_H_
