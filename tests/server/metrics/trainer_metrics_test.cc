#include "server/metrics/trainer_metrics.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/batch/feed_limit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/metric_tables.h"

namespace systole {
namespace {

using testing::Optional;

TEST(TrainerMetricsTest, EachMetricHasAUniqueNameWithItsUnitAndAHelpText) {
  ExpectGoodMetrics(ReadTrainerMetrics({}));
}

TEST(TrainerMetricsTest, TheReadmeListsEachMetric) {
  ExpectListedIn("server/metrics/README.md", kTrainerMetricPrefix, ReadTrainerMetrics({}));
}

TEST(TrainerMetricsTest, TrainerWaitsAndCountsPerLimitAreReported) {
  TrainerTotals totals = {.trainers = 28, .mean_waits = 0.25, .max_waits = 0.75};
  for (size_t limit = 0; limit < kNumFeedLimits; ++limit) {
    totals.by_limit[limit] = static_cast<int64_t>(limit) + 1;
  }
  const std::vector<MetricReading> readings = ReadTrainerMetrics(totals);
  EXPECT_THAT(FindMetric(readings, "trainer_wait_ratio", "mean"), Optional(0.25));
  EXPECT_THAT(FindMetric(readings, "trainer_wait_ratio", "max"), Optional(0.75));
  EXPECT_THAT(FindMetric(readings, "trainers_reporting"), Optional(28));
  for (size_t limit = 0; limit < kNumFeedLimits; ++limit) {
    EXPECT_THAT(FindMetric(readings, "trainer_limits", kFeedLimitNames[limit]),
                Optional(limit + 1));
  }
}

}  // namespace
}  // namespace systole
