#include "server/metrics/server_metrics.h"

#include <cstddef>
#include <string>

#include "absl/time/time.h"
#include "core/cache/cache_metrics.h"
#include "core/concurrency/processors.h"
#include "core/engine/stage_totals.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/metric_tables.h"

namespace systole {
namespace {

using testing::HasSubstr;
using testing::Optional;

TEST(ServerMetricsTest, EachMetricHasAUniqueNameWithItsUnitAndAHelpText) {
  const ServiceCounters counters;
  ExpectGoodMetrics(ReadServerMetrics({.service = counters}));
}

TEST(ServerMetricsTest, TheReadmeListsEachMetric) {
  const ServiceCounters counters;
  ExpectListedIn("server/metrics/README.md", kServerMetricPrefix,
                 ReadServerMetrics({.service = counters}));
}

TEST(ServerMetricsTest, ServerMetricsIncludeTheCacheMetrics) {
  const ServiceCounters counters;
  EXPECT_EQ(ReadServerMetrics({.service = counters}).size(),
            ServerMetrics().size() + CacheMetrics().size());
  EXPECT_THAT(FindMetric(ReadServerMetrics({.service = counters, .cache = {.disk_hits = 5}}),
                         "cache_hits", "disk"),
              Optional(5));
}

TEST(ServerMetricsTest, MetricsTakeTheirValuesFromEverySource) {
  ServiceCounters counters;
  counters.steps_served = 3;
  counters.send_seconds = 0.25;
  const std::vector<MetricReading> readings =
      ReadServerMetrics({.service = counters,
                         .engine = {.examples_made = 48,
                                    .slices_ready = 5,
                                    .slices_kept = 6,
                                    .stages = {.read = absl::Milliseconds(1500),
                                               .make = absl::Seconds(20),
                                               .wait = absl::Seconds(30)}},
                         .listener = {.open = 2, .over_peer = 9},
                         .masked_examples = {1, 2, 3, 4, 5, 6, 7}});
  EXPECT_THAT(FindMetric(readings, "steps_served"), Optional(3));
  EXPECT_THAT(FindMetric(readings, "examples_made"), Optional(48));
  EXPECT_THAT(FindMetric(readings, "open_connections"), Optional(2));
  EXPECT_THAT(FindMetric(readings, "connections_turned_away", "over_peer"), Optional(9));
  EXPECT_THAT(FindMetric(readings, "ready_slices", "waiting"), Optional(5));
  EXPECT_THAT(FindMetric(readings, "ready_slices", "kept"), Optional(6));
  EXPECT_THAT(FindMetric(readings, "stage_seconds", "read"), Optional(1.5));
  EXPECT_THAT(FindMetric(readings, "stage_seconds", "make"), Optional(20));
  EXPECT_THAT(FindMetric(readings, "stage_seconds", "wait"), Optional(30));
  EXPECT_THAT(FindMetric(readings, "stage_seconds", "send"), Optional(0.25));
  double cause = 0;
  for (const char* name :
       {"checksum", "record", "too_large", "format", "feature", "image", "value"}) {
    EXPECT_THAT(FindMetric(readings, "masked_examples", name), Optional(++cause));
  }
  EXPECT_THAT(FindMetric(readings, "cpus"), Optional(UsableProcessors()));
}

TEST(ServerMetricsTest, TheReadmeListsTheStepWaitHistogram) {
  const std::string table = FamiliesTable({StepWaitFamily(StageTotals().step_waits())});
  EXPECT_THAT(ReadWholeFile("server/metrics/README.md"), HasSubstr(table))
      << "the table in server/metrics/README.md should be:\n"
      << table;
}

// A running stream has a place, so no stream ends with the cause kNoPlace.
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
