#include "bench/rounds.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"

namespace systole::bench {
namespace {

using ::testing::ElementsAre;

void WantAmount(const char* amount) { setenv("SYSTOLE_BENCH", amount, 1); }

TEST(RoundsTest, EnvironmentDecidesRoundsAndWork) {
  unsetenv("SYSTOLE_BENCH");
  EXPECT_EQ(NumRounds(), 5);
  EXPECT_EQ(ScaledWork(1000), 1000);
  WantAmount("quick");
  EXPECT_EQ(NumRounds(), 3);
  EXPECT_EQ(ScaledWork(1000), 250);
  WantAmount("smoke");
  EXPECT_EQ(NumRounds(), 1);
  EXPECT_EQ(ScaledWork(1000), 10);
  EXPECT_EQ(ScaledWork(10), 1);  // At least 1.
}

TEST(RoundsTest, AnInvalidSystoleBenchValueEndsTheProgram) {
  WantAmount("fast");
  EXPECT_EXIT(NumRounds(), testing::ExitedWithCode(2), "SYSTOLE_BENCH is 'fast', want full, quick");
}

TEST(RoundsTest, SidesTakeTurnsAndNoneIsAlwaysFirst) {
  WantAmount("quick");
  std::string order;
  const auto side = [&](char name) {
    return [&order, name] {
      order += name;
      return Sample{.amount = static_cast<double>(order.size()), .seconds = 2};
    };
  };
  const auto samples = TakeTurns({side('a'), side('b')});
  EXPECT_EQ(order, "abbaab");
  ASSERT_EQ(samples.size(), 2u);
  ASSERT_EQ(samples[1].size(), 3u);
  EXPECT_EQ(samples[1][0].amount, 2);  // b had turns 2, 3 and 6.
  EXPECT_EQ(samples[1][1].amount, 3);
  EXPECT_EQ(samples[1][2].amount, 6);
  EXPECT_EQ(samples[1][2].rate(), 3);
}

TEST(RoundsTest, MedianIsTheMiddleOne) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({7}), 7);
}

class SilentReporter final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const auto& [name, counter] : runs[0].counters) counters[name] = counter.value;
  }
  std::map<std::string, double> counters;
};

TEST(RoundsTest, AMeasurementThatCannotRunIsRecordedWithItsReason) {
  const TempFolder folder;
  const std::string results = folder / "results.jsonl";
  setenv("SYSTOLE_BENCH_RESULTS", results.c_str(), 1);
  ReportNotMeasured("link", "needs root");
  std::ifstream file(results);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_EQ(line, R"({"not_measured":"link","reason":"needs root"})");
}

TEST(RoundsTest, RowsAndPointsGoToTheResultsFileAndRatiosToCounters) {
  const TempFolder folder;
  const std::string results = folder / "results.jsonl";
  setenv("SYSTOLE_BENCH_RESULTS", results.c_str(), 1);
  // The rounds' ratios are 0.5, 0.25 and 0.8.
  const std::vector<Sample> figure = {
      {.amount = 2000, .seconds = 2, .cpu_seconds = 4, .peak_bytes = 10},
      {.amount = 1000, .seconds = 2, .cpu_seconds = 2, .peak_bytes = 30},
      {.amount = 1600, .seconds = 1, .cpu_seconds = 8, .peak_bytes = 20}};
  const std::vector<Sample> ceiling = {{.amount = 2000, .seconds = 1},
                                       {.amount = 2000, .seconds = 1},
                                       {.amount = 2000, .seconds = 1}};
  benchmark::RegisterBenchmark("row", [&](benchmark::State& state) {
    for (auto _ : state) {
      ReportRow(state, "share",
                {.figure = "f",
                 .ceiling = "c",
                 .unit = "kB/s",
                 .unit_size = 1000,
                 .wanted = 0.6,
                 .bound = Bound::kAtMost,
                 .valid_up_to = 1},
                figure, ceiling);
      ReportPoint({.curve = "p", .series = "s", .x_label = "n", .x = 2, .y_label = "m", .y = 3});
    }
  })->Iterations(1);
  SilentReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  unsetenv("SYSTOLE_BENCH_RESULTS");

  EXPECT_EQ(reporter.counters["share"], 0.5);
  EXPECT_EQ(reporter.counters["share_min"], 0.25);
  EXPECT_EQ(reporter.counters["share_max"], 0.8);
  std::ifstream file(results);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  // The CPU seconds per kB are 2, 2 and 5 in the three rounds.
  EXPECT_THAT(
      lines,
      ElementsAre(R"({"figure":"f","ceiling":"c","unit":"kB/s","figure_value":1,"ceiling_value":2,)"
                  R"("ratio":0.5,"ratio_min":0.25,"ratio_max":0.8,"rounds":3,"wanted":0.6,)"
                  R"("bound":"at most","valid_up_to":1,"cpu_seconds_per_unit":2,"peak_bytes":30})",
                  R"({"curve":"p","series":"s","x_label":"n","x":2,"y_label":"m","y":3})"));
}

}  // namespace
}  // namespace systole::bench
