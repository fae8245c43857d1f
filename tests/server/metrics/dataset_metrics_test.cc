#include "server/metrics/dataset_metrics.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

TEST(DatasetMetricsTest, EachDatasetHasSeriesOfItsOwn) {
  const std::vector<MetricFamily> families = DatasetFamilies(
      {{.name = "a", .records = 5}, {.name = "b", .records = 7, .masked_examples = 2}});
  ASSERT_EQ(families.size(), 3u);
  EXPECT_EQ(families[0].name, "systole_server_dataset_records");
  ASSERT_EQ(families[0].samples.size(), 2u);
  EXPECT_EQ(families[0].samples[1].labels[0].name, "dataset");
  EXPECT_EQ(families[0].samples[1].labels[0].value, "b");
  EXPECT_EQ(families[0].samples[1].value, 7);
  EXPECT_EQ(families[2].name, "systole_server_dataset_masked_examples_total");
  EXPECT_EQ(families[2].samples[1].value, 2);
}

TEST(DatasetMetricsTest, DatasetsBeyondTheFirstHundredAreCountedAsOther) {
  std::vector<DatasetNumbers> datasets;
  datasets.push_back({.name = "other", .records = 1000});
  for (int i = 0; i < 250; ++i) datasets.push_back({.name = absl::StrCat("d", i), .records = 1});
  const std::vector<MetricFamily> families = DatasetFamilies(datasets);
  for (const MetricFamily& family : families) {
    ASSERT_EQ(family.samples.size(), kMaxDatasetSeries + 1) << family.name;
    EXPECT_EQ(family.samples.back().labels[0].value, "other");
  }
  EXPECT_EQ(families[0].samples.back().value, 1150);
}

TEST(DatasetMetricsTest, TheBuildInfoMetricHasTheVersionsAsLabels) {
  const MetricFamily build = BuildInfo("1.2.3", "v9");
  EXPECT_EQ(build.name, "systole_server_build_info");
  ASSERT_EQ(build.samples.size(), 1u);
  EXPECT_EQ(build.samples[0].value, 1);
  EXPECT_EQ(build.samples[0].labels[0].value, "1.2.3");
  EXPECT_EQ(build.samples[0].labels[1].value, "v9");
}

TEST(DatasetMetricsTest, TheReadmeListsEachMetric) {
  std::vector<MetricFamily> families = DatasetFamilies({{.name = "a"}});
  families.push_back(BuildInfo("1", "1"));
  const std::string table = FamiliesTable(families);
  EXPECT_THAT(ReadWholeFile("server/metrics/README.md"), HasSubstr(table))
      << "the table in server/metrics/README.md should be:\n"
      << table;
}

}  // namespace
}  // namespace systole
