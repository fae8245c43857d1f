#include "server/metrics/call_metrics.h"

#include <optional>
#include <string>
#include <vector>

#include "core/metrics/metric_family.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

// The sample whose labels have these values. Null if there is none.
const MetricSample* Find(const MetricFamily& family, const std::vector<std::string>& values) {
  for (const MetricSample& sample : family.samples) {
    std::vector<std::string> labels;
    for (const MetricLabel& label : sample.labels) labels.push_back(label.value);
    if (labels == values) return &sample;
  }
  return nullptr;
}

TEST(CallMetricsTest, ACallCountsUnderItsMethodAndStatus) {
  CallMetrics metrics({"a.B/C", "a.B/D"}, [] { return absl::ZeroDuration(); });
  const size_t method = metrics.MethodOf("/a.B/D");
  metrics.Began(method);
  metrics.Ended(method, 5, absl::Milliseconds(7), 3000);
  const std::vector<MetricFamily> families = metrics.Read();
  ASSERT_EQ(families.size(), 3u);
  EXPECT_EQ(families[0].name, "grpc_server_call_started_total");
  EXPECT_EQ(Find(families[0], {"a.B/C"})->value, 0);
  EXPECT_EQ(Find(families[0], {"a.B/D"})->value, 1);
  EXPECT_EQ(families[1].name, "grpc_server_call_duration_seconds");
  ASSERT_EQ(families[1].samples.size(), 1u);
  const MetricSample* const took = Find(families[1], {"a.B/D", "NOT_FOUND"});
  ASSERT_NE(took, nullptr);
  EXPECT_EQ(took->histogram.count(), 1);
  EXPECT_DOUBLE_EQ(took->histogram.sum, 0.007);
  const MetricSample* const sent = Find(families[2], {"a.B/D", "NOT_FOUND"});
  ASSERT_NE(sent, nullptr);
  EXPECT_EQ(sent->histogram.sum, 3000);
}

TEST(CallMetricsTest, UnknownMethodsAndStatusesShareOneSeries) {
  CallMetrics metrics({"a.B/C"}, [] { return absl::ZeroDuration(); });
  for (const char* name : {"", "/", "a.B", "/a.B/c", "//a.B/C", "/x\n{}", "/other"}) {
    const size_t method = metrics.MethodOf(name);
    metrics.Began(method);
    metrics.Ended(method, 999, absl::ZeroDuration(), 0);
    metrics.Ended(method, -1, absl::ZeroDuration(), 0);
  }
  const std::vector<MetricFamily> families = metrics.Read();
  EXPECT_EQ(families[0].samples.size(), 2u);
  EXPECT_EQ(Find(families[0], {"other"})->value, 7);
  ASSERT_EQ(families[1].samples.size(), 1u);
  EXPECT_EQ(Find(families[1], {"other", "OTHER"})->histogram.count(), 14);
}

// Histograms of several programs can be added up only if they have the same bounds.
TEST(CallMetricsTest, HistogramBoundsHaveTheCountAndEndsOfGrpcA66) {
  CallMetrics metrics({}, [] { return absl::ZeroDuration(); });
  metrics.Ended(metrics.MethodOf("x"), 0, absl::ZeroDuration(), 0);
  const std::vector<MetricFamily> families = metrics.Read();
  EXPECT_EQ(families[1].samples[0].histogram.bounds.size(), 41u);
  EXPECT_EQ(families[1].samples[0].histogram.bounds.front(), 0);
  EXPECT_EQ(families[1].samples[0].histogram.bounds.back(), 100);
  EXPECT_EQ(families[2].samples[0].histogram.bounds.size(), 14u);
  EXPECT_EQ(families[2].samples[0].histogram.bounds.back(), 4294967296.0);
}

TEST(CallMetricsTest, TheReadmeListsEachMetric) {
  CallMetrics metrics({}, [] { return absl::ZeroDuration(); });
  metrics.Ended(metrics.MethodOf("x"), 0, absl::ZeroDuration(), 0);
  const std::string table = FamiliesTable(metrics.Read());
  EXPECT_THAT(ReadWholeFile("server/metrics/README.md"), HasSubstr(table))
      << "the table in server/metrics/README.md should be:\n"
      << table;
}

}  // namespace
}  // namespace systole
