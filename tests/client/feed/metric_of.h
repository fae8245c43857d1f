// One number of a feed's metrics, as a monitor gets it.
#ifndef SYSTOLE_TESTS_CLIENT_FEED_METRIC_OF_H_
#define SYSTOLE_TESTS_CLIENT_FEED_METRIC_OF_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/step/feed_metrics.h"
#include "core/metrics/exposition.h"
#include "core/metrics/metric_family.h"
#include "gtest/gtest.h"
#include "tests/core/metrics/exposition_parser.h"

namespace systole {

inline Exposition Exposed(const std::vector<MetricFamily>& families) {
  const absl::StatusOr<Exposition> read = ParseExposition(ExpositionOf(families));
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *read : Exposition();
}

// `series` is a series' name and labels as in the metrics' text format, but without the prefix that
// all names of a feed's metrics have.
inline double MetricOf(const std::vector<MetricFamily>& families, absl::string_view series) {
  const Exposition read = Exposed(families);
  const auto found = read.series.find(absl::StrCat(kFeedMetricPrefix, series));
  EXPECT_TRUE(found != read.series.end()) << series;
  return found != read.series.end() ? found->second : -1;
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CLIENT_FEED_METRIC_OF_H_
