#include "client/cli/pacing/load_level.h"

#include <string>
#include <vector>

#include "client/cli/pacing/load_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/feed/fake_server.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

struct Search {
  int largest = 0;
  std::vector<int> asked;
};

// Runs LargestFed() as if the servers could feed up to `truth` trainers.
Search Find(int most, int truth) {
  Search search;
  const absl::StatusOr<int> found = LargestFed(most, [&](int trainers) -> absl::StatusOr<bool> {
    search.asked.push_back(trainers);
    return trainers <= truth;
  });
  EXPECT_THAT(found, IsOk());
  search.largest = found.value_or(-1);
  return search;
}

TEST(LargestFedTest, TriesDoublingCountsAndThenBisects) {
  EXPECT_THAT(Find(100, 5).asked, ElementsAre(1, 2, 4, 8, 6, 5));
  EXPECT_THAT(Find(100, 0).asked, ElementsAre(1));
  EXPECT_THAT(Find(6, 100).asked, ElementsAre(1, 2, 4, 6));
  EXPECT_THAT(Find(1, 100).asked, ElementsAre(1));
  EXPECT_THAT(Find(5, 4).asked, ElementsAre(1, 2, 4, 5));
}

TEST(LargestFedTest, FindsEveryLargestFedCountInAtMostTenTries) {
  for (int most = 1; most <= 20; ++most) {
    for (int truth = 0; truth <= most; ++truth) {
      const Search search = Find(most, truth);
      EXPECT_EQ(search.largest, truth) << most;
      EXPECT_LE(search.asked.size(), 10u);
    }
  }
}

TEST(RampUpTest, TriesAllCountsAndIgnoresSuccessesAboveAFailure) {
  std::vector<int> asked;
  const absl::StatusOr<int> fed = RampUp(11, [&](int trainers) -> absl::StatusOr<bool> {
    asked.push_back(trainers);
    return trainers != 4;
  });
  EXPECT_THAT(asked, ElementsAre(1, 2, 4, 8, 11));
  EXPECT_THAT(fed, IsOkAndHolds(2)) << "8 trainers fed by luck do not show that 4 are fed";
}

TEST(LargestFedTest, AnErrorEndsTheSearch) {
  EXPECT_THAT(
      LargestFed(4, [](int) -> absl::StatusOr<bool> { return absl::UnavailableError("gone"); })
          .status(),
      StatusIs(absl::StatusCode::kUnavailable, "gone"));
}

// A trainer that took three steps of 10 ms. It waited `wait_ms` ms for each step but the first.
emulator::PacedResult Trainer(int wait_ms) {
  emulator::PacedResult result;
  for (int step = 0; step < 3; ++step) {
    const absl::Duration wait = absl::Milliseconds(step == 0 ? 0 : wait_ms);
    result.books.Add({.step = step,
                      .wait = wait,
                      .compute = absl::Milliseconds(10),
                      .infeed_stall = {wait, wait}});
  }
  result.wall_au = result.books.utilisation().au;
  return result;
}

// What was measured with one trainer for each of `waits_ms`. A step has 10 examples, 5 for each of
// two cores. A core takes 5 examples in 10 ms, which are 500 examples/s. In the window of 2 s 150
// steps came, which are 750 examples/s, as many as 1.5 cores take. The server has 4 processors and
// used 3 s of CPU time, so 1.5 processors were busy. Each busy processor fed 1.5 / 1.5 = 1 core.
LoadLevel Level(const std::vector<int>& waits_ms) {
  LoadLevel level = {.cores = {.infeed = {.num_cores = 2, .step_time = absl::Milliseconds(10)},
                               .per_core_batch = 5},
                     .window = absl::Seconds(2),
                     .steps = 150,
                     .server_cpu_seconds = 3,
                     .server_cpus = 4,
                     .server_resident_bytes = 250'000'000,
                     .retries = 7};
  for (const int wait : waits_ms) level.trainers.push_back(Trainer(wait));
  return level;
}

TEST(LoadLevelTest, ComputesCoresFedPerBusyServerCpuIfCpuTimeIsKnown) {
  LoadLevel level = Level({0, 1});
  EXPECT_EQ(level.cores.core_examples_per_s(), 500);
  EXPECT_EQ(level.examples_per_s(), 750);
  EXPECT_EQ(level.cores_worth(), 1.5);
  EXPECT_EQ(level.server_cpus_busy(), 1.5);
  EXPECT_EQ(level.cores_fed_per_server_cpu(), 1.0);
  EXPECT_THAT(level.cores_busy(), DoubleNear(2 + 2 * 10.0 / 11, 1e-12));
  level.server_cpu_seconds.reset();
  EXPECT_FALSE(level.server_cpus_busy().has_value());
  EXPECT_FALSE(level.cores_fed_per_server_cpu().has_value());
  level.server_cpu_seconds = 0;
  EXPECT_FALSE(level.cores_fed_per_server_cpu().has_value());
}

// The level's only trainer takes 100 steps a second.
TEST(LoadReportTest, ReportsStepsThatArriveFasterThanTrainersTakeThem) {
  LoadLevel level = Level({0});
  level.steps = 210;
  EXPECT_EQ(WindowsText(level), "");
  level.steps = 300;
  EXPECT_THAT(WindowsText(level), HasSubstr("150.0 steps/s arrived, and the trainers take 100.0"));
}

// AU (accelerator utilization) is compute time over total time. A trainer is fed if its AU is at
// least 0.9. 10 of 11 ms are an AU of 0.909, and 10 of 12 ms are an AU of 0.833.
TEST(LoadLevelTest, ALevelIsFedOnlyIfEveryTrainerIsFed) {
  EXPECT_TRUE(Level({0, 1, 1}).fed());
  EXPECT_FALSE(Level({0, 2, 0}).fed());
  EXPECT_THAT(Level({0, 2, 0}).lowest_au(), DoubleNear(10.0 / 12, 1e-12));
  LoadLevel level = Level({0});
  level.trainers.emplace_back();  // This trainer got no step, so it has no AU.
  EXPECT_EQ(level.lowest_au(), 0);
  EXPECT_EQ(level.waits().count(), 2);
}

TEST(LoadLevelTest, ALevelIsNotFedIfWallClockUtilisationIsTooLow) {
  LoadLevel level = Level({0, 0});
  EXPECT_TRUE(level.fed());
  // A fifth of the time was lost on this machine, not on the servers.
  level.trainers[1].wall_au = 0.8;
  EXPECT_EQ(level.lowest_au(), 1);
  EXPECT_EQ(level.lowest_wall_au(), 0.8);
  EXPECT_FALSE(level.fed());
}

TEST(RunLoadLevelTest, CountsArrivedStepsForServerAndClientFinishing) {
  const FakeFeed feed = {.pixels = true, .epochs = 0};
  for (const char* const finish : {"server", "client"}) {
    SCOPED_TRACE(finish);
    const FakeServer server(feed);
    const LoadOptions options = {
        .spec = SpecOf(feed),
        .client = {.servers = {server.address()}, .finish = finish, .prefetch_bytes = 0},
        .cores = {.infeed = {.num_cores = 2, .queue_depth = 1, .step_time = absl::Milliseconds(5)},
                  .per_core_batch = 4,
                  .slice_bytes = 1700},
        .duration = absl::Milliseconds(500)};
    const absl::StatusOr<LoadLevel> level = RunLoadLevel(options, 1, nullptr);
    ASSERT_THAT(level, IsOk());
    // `taken` is the number of steps that the trainer took. The window begins after the first step
    // and ends before the trainer does. The window also counts steps that had arrived and were not
    // taken yet.
    const int64_t taken = level->trainers[0].books.steps();
    EXPECT_GT(level->steps, taken * 3 / 5);
    EXPECT_LE(level->steps, taken + 4);
    EXPECT_EQ(level->examples(), 8.0 * static_cast<double>(level->steps));
  }
}

TEST(LoadReportTest, ReportsTheLargestFedLevelAsTextAndJson) {
  LoadReport report = {.most_trainers = 4, .largest_fed = 2};
  report.levels = {Level({0}), Level({0, 1}), Level({2, 2, 2, 2}), Level({2, 2, 2})};
  report.levels[1].server_cpu_seconds = 6;
  report.notes = {"shared"};
  EXPECT_EQ(report.headline_level().trainers.size(), 2u);
  EXPECT_THAT(
      report.ToText(),
      AllOf(
          HasSubstr("mode            load\n"), HasSubstr("demand          500.0 examples/s"),
          HasSubstr("       4    83.33 %    83.33 %         6.7     75.0        750.0           "
                    "  1.500        250        7     1.000  p50 2.000 ms"),
          HasSubstr(
              "stopped         3 trainers were at AU 83.33 %, below 90 %: the servers do "
              "not feed them, and more trainers would need more data. With --ramp, larger numbers "
              "of trainers, up to 4, are tried all the same"),
          HasSubstr("fed             2 trainers at AU >= 90 %, by the wall clock too\n"),
          HasSubstr("AU per trainer  100.00 % 90.91 %\n"),
          HasSubstr("cores fed per server CPU 0.500: 750.0 examples/s arrived, enough for 1.50 "
                    "cores, with 3.000 server CPUs busy (2 trainers)\n"),
          HasSubstr("note: shared\n")));
  report.facts = {{"dataset", "Dataset", std::string("flowers")}};
  EXPECT_THAT(
      emulator::ToJson(ReportOf(report)),
      AllOf(
          StartsWith(R"({"mode":"load","verdict":"2 of 4 trainers are fed at AU >= 90 %",)"
                     R"("dataset":"flowers",)"),
          HasSubstr(R"("largest_fed":2,"most_trainers":4,"cores_fed_per_server_cpu":0.5,)"),
          HasSubstr(
              R"({"trainers":1,"fed":true,"lowest_au":1,"lowest_wall_au":1,"au":[1],"wall_au":[1],)"
              R"("window_seconds":2,"steps_per_second":75,"wanted_steps_per_second":100,)"
              R"("examples_per_second":750,"cores_worth":1.5,"cores_busy":2,"retries":7,)"
              R"("server_cpu_seconds":3,"server_cpus_busy":1.5,"server_cpus":4,)"
              R"("server_resident_bytes":250000000,"cores_fed_per_server_cpu":1,)"
              R"("step_arrival_seconds":{"p50":0,"p90":0,"p99":0,"max":0}})")));
}

TEST(LoadReportTest, ReportsTheOneTrainerLevelIfNoTrainerIsFed) {
  LoadReport report = {.most_trainers = 4, .largest_fed = 0, .levels = {Level({9})}};
  EXPECT_THAT(report.ToText(), AllOf(HasSubstr("fed             not even 1 trainer"),
                                     HasSubstr("stopped         1 trainer was at AU 52.63 %"),
                                     HasSubstr("cores fed per server CPU 1.000: ")));
  report.levels[0].server_cpu_seconds.reset();
  EXPECT_THAT(report.ToText(),
              HasSubstr("cores fed per server CPU not known: a server does not report"));
  EXPECT_THAT(emulator::ToJson(ReportOf(report)),
              AllOf(HasSubstr(R"("verdict":"not even 1 trainer is fed at AU >= 90 %")"),
                    HasSubstr(R"("cores_fed_per_server_cpu":null)")));
}

}  // namespace
}  // namespace systole
