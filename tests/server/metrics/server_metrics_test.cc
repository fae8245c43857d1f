#include "server/metrics/server_metrics.h"

#include <cstddef>

#include "core/cache/cache_metrics.h"
#include "core/concurrency/processors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/metric_tables.h"

namespace systole {
namespace {

using testing::Optional;

TEST(ServerMetricsTest, EachHasItsOwnNameItsUnitAndASentence) {
  const ServiceCounters counters;
  ExpectGoodMetrics(ReadServerMetrics({.service = counters}));
}

TEST(ServerMetricsTest, TheDocumentListsEach) {
  const ServiceCounters counters;
  ExpectListedIn("server/metrics/README.md", kServerMetricPrefix,
                 ReadServerMetrics({.service = counters}));
}

TEST(ServerMetricsTest, TheCachesAreAmongThem) {
  const ServiceCounters counters;
  EXPECT_EQ(ReadServerMetrics({.service = counters}).size(),
            ServerMetrics().size() + CacheMetrics().size());
  EXPECT_THAT(FindMetric(ReadServerMetrics({.service = counters, .cache = {.disk_hits = 5}}),
                         "cache_hits", "disk"),
              Optional(5));
}

TEST(ServerMetricsTest, EachSourceIsRead) {
  ServiceCounters counters;
  counters.steps_served = 3;
  const std::vector<MetricReading> readings =
      ReadServerMetrics({.service = counters,
                         .engine = {.examples_made = 48},
                         .listener = {.open = 2, .over_peer = 9},
                         .masked_examples = 4});
  EXPECT_THAT(FindMetric(readings, "steps_served"), Optional(3));
  EXPECT_THAT(FindMetric(readings, "examples_made"), Optional(48));
  EXPECT_THAT(FindMetric(readings, "open_connections"), Optional(2));
  EXPECT_THAT(FindMetric(readings, "connections_turned_away", "over_peer"), Optional(9));
  EXPECT_THAT(FindMetric(readings, "masked_examples"), Optional(4));
  EXPECT_THAT(FindMetric(readings, "cpus"), Optional(UsableProcessors()));
}

// A running stream has a place, so it cannot end for lack of one.
TEST(ServerMetricsTest, AStreamsEndCountsOnceWhateverTheCause) {
  ServiceCounters counters;
  for (size_t cause = 0; cause < kNumEndCauses; ++cause) {
    if (static_cast<EndCause>(cause) == EndCause::kNoPlace) continue;
    counters.ended.Count(static_cast<EndCause>(cause));
  }
  double ends = 0;
  for (const MetricReading& reading : ReadServerMetrics({.service = counters})) {
    if (reading.name != "stream_ends") continue;
    for (const MetricValue& value : reading.values) ends += value.value;
  }
  EXPECT_EQ(ends, kNumEndCauses - 1);
}

}  // namespace
}  // namespace systole
