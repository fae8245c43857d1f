#include "client/step/feed_metrics.h"

#include <cstddef>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/metric_tables.h"

namespace systole {
namespace {

using testing::Optional;

TEST(FeedMetricsTest, EachHasItsOwnNameItsUnitAndASentence) {
  ExpectGoodMetrics(ReadFeedMetrics({}));
}

TEST(FeedMetricsTest, TheDocumentListsEach) {
  ExpectListedIn("client/step/README.md", kFeedMetricPrefix, ReadFeedMetrics({}));
}

// Compares the metrics with the numbers that the header declares.
TEST(FeedMetricsTest, EveryNumberThatAFeedCountsIsAMetric) {
  const std::string header = ReadWholeFile("client/step/feed_client_stats.h");
  std::set<std::string> counted;
  const std::regex field("(int64_t|absl::Duration|double) ([a-z_]+) = ");
  for (std::sregex_iterator it(header.begin(), header.end(), field), end; it != end; ++it) {
    counted.insert((*it)[2].str() + ((*it)[1] == "absl::Duration" ? "_seconds" : ""));
  }
  counted.insert({"trainer_seconds", "trainer_wait_seconds"});  // FeedClientStats::waits.
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

TEST(FeedMetricsTest, WaitsAreToldByCause) {
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

TEST(FeedMetricsTest, AWaitIsInSeconds) {
  EXPECT_THAT(FindMetric(ReadFeedMetrics({.longest_wait = absl::Milliseconds(1500)}),
                         "longest_wait_seconds"),
              Optional(1.5));
}

}  // namespace
}  // namespace systole
