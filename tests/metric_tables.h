// Checks that hold for every table of metrics, and for the document that lists the metrics.
#ifndef SYSTOLE_TESTS_METRIC_TABLES_H_
#define SYSTOLE_TESTS_METRIC_TABLES_H_

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/metrics/metric.h"
#include "core/metrics/metric_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"

namespace systole {

// Checks that names are unique and made of words. A unit is the last word of a name. Each metric
// has a help text, and each label has values.
inline void ExpectGoodMetrics(const std::vector<MetricReading>& readings) {
  static const std::regex kWords("[a-z][a-z0-9]*(_[a-z0-9]+)*");
  // Words that no name may contain, except that the last word may be `bytes` or `seconds`.
  static const std::set<std::string> kUnits = {"bytes", "seconds", "kb",    "mb",   "gb", "us",
                                               "ms",    "ns",      "sec",   "secs", "s",  "minutes",
                                               "hours", "percent", "total", "count"};
  std::set<std::string> seen;
  for (const MetricReading& reading : readings) {
    SCOPED_TRACE(reading.name);
    EXPECT_TRUE(std::regex_match(reading.name, kWords));
    EXPECT_LE(reading.name.size(), 64u);
    EXPECT_TRUE(seen.insert(reading.name).second) << "two metrics have this name";
    std::vector<std::string> words = absl::StrSplit(reading.name, '_');
    if (UnitOf(reading.name) != MetricUnit::kCount) words.pop_back();
    for (const std::string& word : words) {
      EXPECT_EQ(kUnits.count(word), 0u)
          << "the unit is the last word: bytes or seconds, not " << word;
    }
    EXPECT_GE(reading.help.size(), 10u);
    EXPECT_THAT(reading.help, testing::EndsWith("."));
    EXPECT_THAT(reading.help, testing::Not(testing::HasSubstr("|"))) << "| ends a table cell";
    if (reading.label.empty()) {
      ASSERT_EQ(reading.values.size(), 1u);
      EXPECT_EQ(reading.values[0].label_value, "");
      continue;
    }
    EXPECT_TRUE(std::regex_match(reading.label, kWords));
    EXPECT_GE(reading.values.size(), 2u);
    std::set<std::string> values;
    for (const MetricValue& value : reading.values) {
      EXPECT_TRUE(std::regex_match(value.label_value, kWords)) << value.label_value;
      EXPECT_TRUE(values.insert(value.label_value).second) << value.label_value;
    }
  }
}

// `path` is relative to the root of the tree.
inline void ExpectListedIn(const std::string& path, absl::string_view prefix,
                           const std::vector<MetricReading>& readings) {
  const std::string table = MetricsTable(prefix, readings);
  EXPECT_THAT(ReadWholeFile(path), testing::HasSubstr(table))
      << "the table in " << path << " does not match the metrics; it should be:\n"
      << table;
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_METRIC_TABLES_H_
