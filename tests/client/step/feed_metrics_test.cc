#include "client/step/feed_metrics.h"

#include <regex>
#include <set>
#include <string>

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
  std::set<std::string> told;
  std::set<double (*)(const FeedClientStats&)> reads;
  for (const MetricLine<FeedClientStats>& line : FeedMetrics()) {
    told.emplace(line.name);
    reads.insert(line.read);
  }
  EXPECT_EQ(told, counted);
  EXPECT_EQ(reads.size(), told.size()) << "two metrics read the same number";
}

TEST(FeedMetricsTest, AWaitIsInSeconds) {
  EXPECT_THAT(FindMetric(ReadFeedMetrics({.longest_wait = absl::Milliseconds(1500)}),
                         "longest_wait_seconds"),
              Optional(1.5));
}

}  // namespace
}  // namespace systole
