#include "client/step/feed_metrics.h"

#include <algorithm>
#include <cstddef>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "client/verdict/feed_verdict.h"
#include "core/metrics/exposition.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/metrics/exposition_parser.h"
#include "tests/metric_tables.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::Optional;

TEST(FeedMetricsTest, EachMetricHasAUniqueNameAUnitAndADescription) {
  ExpectGoodMetrics(ReadFeedMetrics({}));
}

TEST(FeedMetricsTest, TheReadmeListsEachMetric) {
  ExpectListedIn("client/step/README.md", kFeedMetricPrefix, ReadFeedMetrics({}));
}

// Compares the metrics with the numbers that feed_client_stats.h declares.
TEST(FeedMetricsTest, EveryNumberThatAFeedCountsIsAMetric) {
  const std::string header = ReadWholeFile("client/step/feed_client_stats.h");
  std::set<std::string> counted;
  const std::regex field("(int64_t|absl::Duration|double) ([a-z_]+) = ");
  for (std::sregex_iterator it(header.begin(), header.end(), field), end; it != end; ++it) {
    counted.insert((*it)[2].str() + ((*it)[1] == "absl::Duration" ? "_seconds" : ""));
  }
  // The numbers in FeedClientStats::waits.
  counted.insert({"trainer_seconds", "trainer_wait_seconds", "recent_wait_ratio", "recent_limit"});
  std::set<std::string> told;
  size_t numbers = 0;
  std::set<double (*)(const FeedClientStats&)> reads;
  for (const MetricLine<FeedClientStats>& line : FeedMetrics()) {
    told.emplace(line.name);
    if (line.read != nullptr) reads.insert(line.read);
    for (const MetricPart<FeedClientStats>& part : line.parts) reads.insert(part.read);
    numbers += line.read != nullptr ? 1 : line.parts.size();
  }
  EXPECT_EQ(told, counted);
  EXPECT_EQ(reads.size(), numbers) << "two metrics read the same number";
}

TEST(FeedMetricsTest, WaitsAreReportedByCause) {
  FeedClientStats stats;
  stats.waits.times = {.seconds = 9, .waited = {1, 2, 3, 0.5, 0.25}};
  const std::vector<MetricReading> readings = ReadFeedMetrics(stats);
  EXPECT_THAT(FindMetric(readings, "trainer_seconds"), Optional(9));
  EXPECT_THAT(FindMetric(readings, "trainer_wait_seconds", "storage"), Optional(1));
  EXPECT_THAT(FindMetric(readings, "trainer_wait_seconds", "decode"), Optional(2));
  EXPECT_THAT(FindMetric(readings, "trainer_wait_seconds", "wire"), Optional(3));
  EXPECT_THAT(FindMetric(readings, "trainer_wait_seconds", "client"), Optional(0.5));
  EXPECT_THAT(FindMetric(readings, "trainer_wait_seconds", "unknown"), Optional(0.25));
}

TEST(FeedMetricsTest, RecentLimitIsOneForTheCurrentLimitAndZeroForTheOthers) {
  std::set<std::string> limits;
  for (const FeedLimit limit :
       {FeedLimit::kStorage, FeedLimit::kDecode, FeedLimit::kWire, FeedLimit::kClient,
        FeedLimit::kTrainer, FeedLimit::kNothing, FeedLimit::kUnknown}) {
    FeedClientStats stats;
    stats.waits.recent = {.limit = limit, .waits = 0.25};
    const std::vector<MetricReading> readings = ReadFeedMetrics(stats);
    EXPECT_THAT(FindMetric(readings, "recent_wait_ratio"), Optional(0.25));
    for (const MetricReading& reading : readings) {
      if (reading.name != "recent_limit") continue;
      EXPECT_EQ(reading.values.size(), 7u);
      for (const MetricValue& value : reading.values) {
        EXPECT_EQ(value.value, value.label_value == LimitName(limit) ? 1 : 0) << value.label_value;
        limits.insert(value.label_value);
      }
    }
  }
  EXPECT_EQ(limits.size(), 7u);
}

TEST(FeedMetricsTest, WaitsFallIntoTheBucketOfTheirLength) {
  FeedClientStats stats;
  stats.AddWait(1, -absl::Seconds(1));  // Counts as a wait of zero.
  stats.AddWait(2, absl::ZeroDuration());
  stats.AddWait(3, absl::Microseconds(50));
  stats.AddWait(4, absl::Microseconds(51));
  stats.AddWait(5, absl::Seconds(600));
  stats.AddWait(6, absl::Hours(2));
  const HistogramReading waits = stats.step_waits.Read();
  EXPECT_EQ(waits.bounds.size(), StepWaits::kBounds.size());
  EXPECT_TRUE(std::is_sorted(waits.bounds.begin(), waits.bounds.end()));
  ASSERT_EQ(waits.counts.size(), StepWaits::kBounds.size() + 1);
  EXPECT_EQ(waits.counts[0], 3);
  EXPECT_EQ(waits.counts[1], 1);
  EXPECT_EQ(waits.counts[StepWaits::kBounds.size() - 1], 1);
  EXPECT_EQ(waits.counts.back(), 1);
  EXPECT_EQ(waits.count(), 6);
  EXPECT_NEAR(waits.sum, 7800.000101, 1e-6);
  EXPECT_EQ(stats.longest_wait, absl::Hours(2));
  EXPECT_EQ(stats.longest_wait_step, 6);
}

// A monitor keeps a series for each name and set of labels, so their number must be fixed.
TEST(FeedMetricsTest, FamiliesHaveEveryMetricAndTheHistogram) {
  FeedClientStats stats;
  stats.not_shared = "unix:/secret";
  stats.masked_records = {1, 2};
  stats.AddWait(1, absl::Milliseconds(3));
  const absl::StatusOr<Exposition> written = ParseExposition(ExpositionOf(FeedFamilies(stats)));
  ASSERT_THAT(written, IsOk());
  EXPECT_EQ(written->names(), ParseExposition(ExpositionOf(FeedFamilies({})))->names());
  for (const MetricReading& reading : ReadFeedMetrics({})) {
    EXPECT_EQ(written->types.count(PrometheusName(kFeedMetricPrefix, reading)), 1u);
  }
  EXPECT_EQ(written->types.size(), ReadFeedMetrics({}).size() + 1);
  EXPECT_EQ(written->series.at("systole_feed_step_wait_seconds_count"), 1);
  EXPECT_EQ(written->series.at("systole_feed_step_wait_seconds_bucket{le=\"0.002\"}"), 0);
  EXPECT_EQ(written->series.at("systole_feed_step_wait_seconds_bucket{le=\"0.005\"}"), 1);
}

TEST(FeedMetricsTest, TheDocumentListsTheHistogram) {
  EXPECT_THAT(ReadWholeFile("client/step/README.md"),
              testing::HasSubstr(FamiliesTable(FeedHistograms({}))));
}

TEST(FeedMetricsTest, AWaitIsInSeconds) {
  EXPECT_THAT(FindMetric(ReadFeedMetrics({.longest_wait = absl::Milliseconds(1500)}),
                         "longest_wait_seconds"),
              Optional(1.5));
}

}  // namespace
}  // namespace systole
