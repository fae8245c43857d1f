// The table of a feed's metrics: the numbers of FeedClientStats. `systole feed`, Feed.stats() in
// Python and the table in README.md show all of them. FeedFamilies() is for monitors: it also has
// the histogram, for which a table has no place.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_STEP_FEED_METRICS_H_
#define SYSTOLE_CLIENT_STEP_FEED_METRICS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "client/step/feed_client_stats.h"
#include "core/metrics/metric.h"
#include "core/metrics/metric_family.h"

namespace systole {

// For PrometheusName().
inline constexpr absl::string_view kFeedMetricPrefix = "systole_feed_";

std::vector<MetricLine<FeedClientStats>> FeedMetrics();

inline std::vector<MetricReading> ReadFeedMetrics(const FeedClientStats& stats) {
  return ReadMetrics(FeedMetrics(), stats);
}

// The metrics that are histograms.
std::vector<MetricFamily> FeedHistograms(const FeedClientStats& stats);

// All of a feed's metrics. Their names and labels are always the same, because no label is taken
// from a server, a spec or a file.
std::vector<MetricFamily> FeedFamilies(const FeedClientStats& stats);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_STEP_FEED_METRICS_H_
