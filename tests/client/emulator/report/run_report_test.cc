#include "client/emulator/report/run_report.h"

#include <limits>
#include <string>

#include "client/emulator/report/training_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/report/sample_reports.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TrainingReport OneEpoch() {
  TrainingReport report;
  report.model = "flowers \"x\"\n";
  report.num_cores = 2;
  report.per_core_batch = 8;
  report.training_time = absl::Seconds(12);
  report.first_step_wait = absl::Milliseconds(250);
  EpochReport epoch;
  epoch.steps = 40;
  epoch.training = {
      .examples = 2880, .loss = std::numeric_limits<double>::quiet_NaN(), .accuracy = 0.5};
  epoch.validation = Score{.examples = 725, .loss = 1, .accuracy = 0.5};
  epoch.duration = absl::Seconds(4);
  epoch.compute = absl::Seconds(3);
  epoch.bytes_received = 1000000;
  epoch.infeed_stall = {absl::Milliseconds(500), absl::ZeroDuration()};
  report.epochs.push_back(epoch);
  return report;
}

TEST(RunReportTest, JsonOfATrainingRunHoldsEveryNumberOnOneLine) {
  StepHistory steps;
  for (int64_t step = 0; step < 2; ++step) {
    steps.Add(EntryOf({.epoch = 0,
                       .step = step,
                       .steps_per_epoch = 40,
                       .loss = 1.5 - static_cast<double>(step),
                       .accuracy = 0.25,
                       .learning_rate = 0.125,
                       .start = absl::Milliseconds(250 + 500 * step),
                       .infeed_stall = absl::Milliseconds(125 * step),
                       .compute = absl::Milliseconds(375)}));
  }
  const RunReport report = ReportOf(OneEpoch(), steps, {{"seed", "Seed", uint64_t{7}}});
  EXPECT_EQ(
      ToJson(report),
      R"({"mode":"functional","verdict":"diverged: the loss of the last epoch is not a number",)"
      R"("model":"flowers \"x\"\n","numerics":"exact","num_cores":2,)"
      R"("per_core_batch":8,"seed":7,"validation_accuracy":0.5,"training_loss":null,)"
      R"("images_per_second":720,"training_seconds":12,"first_step_wait_seconds":0.25,)"
      R"("bytes_received":1000000,)"
      R"("epochs":[{"steps":40,"training":{"examples":2880,"loss":null,"accuracy":0.5},)"
      R"("validation":{"examples":725,"loss":1,"accuracy":0.5},"seconds":4,"compute_seconds":3,)"
      R"("images_per_second":720,"mean_step_seconds":0.1,"infeed_stall_seconds":[0.5,0],)"
      R"("bytes_received":1000000}],"infeed_stall_seconds":[0.5,0],)"
      R"("history":{"first_step":0,"steps":2,"total_compute_seconds":0.75,)"
      R"("total_infeed_stall_seconds":0.125,"longest_step_seconds":0.5,"steps_per_row":1,)"
      R"("start_seconds":[0.25,0.75],"mean_compute_seconds":[0.375,0.375],)"
      R"("mean_infeed_stall_seconds":[0,0.125],"longest_seconds":[0.375,0.5],)"
      R"("loss":{"mean":[1.5,0.5],"min":[1.5,0.5],"max":[1.5,0.5]},)"
      R"("accuracy":{"mean":[0.25,0.25],"min":[0.25,0.25],"max":[0.25,0.25]},)"
      R"("learning_rate":[0.125,0.125]}})");
}

TEST(RunReportTest, JsonLeavesOutWhatAModeLacks) {
  EXPECT_EQ(ToJson({.mode = RunMode::kReplay}), R"({"mode":"replay"})");
  EXPECT_THAT(
      ToJson(SampleTraining("m", 1, 4)),
      AllOf(Not(HasSubstr("barrier")), Not(HasSubstr("roofline")), Not(HasSubstr("utilization"))));
  EXPECT_THAT(ToJson(SamplePaced(2, 4)),
              AllOf(HasSubstr("\"barrier_seconds\":[0.7,0.3]"),
                    HasSubstr("\"mean_barrier_seconds\":[0,0.009,0,0.009]"), Not(HasSubstr("loss")),
                    Not(HasSubstr("learning_rate")), Not(HasSubstr("epochs"))));
}

TEST(RunReportTest, JsonOfTheRooflineHasItsCoordinates) {
  RunReport report = {.mode = RunMode::kPaced};
  report.roofline =
      Roofline{.peak_flops_per_second = 100,
               .bytes_per_second = 10,
               .layers = {{"a", 64, 16, 2, Bound::kMemory}, {"b", 0, 0, 0, Bound::kVector}}};
  EXPECT_EQ(ToJson(report),
            R"({"mode":"paced","roofline":{"peak_flops_per_second":100,"bytes_per_second":10,)"
            R"("layers":[{"name":"a","flops":64,"bytes":16,"seconds":2,"flops_per_byte":4,)"
            R"("flops_per_second":32,"bound_by":"memory"},{"name":"b","flops":0,"bytes":0,)"
            R"("seconds":0,"flops_per_byte":0,"flops_per_second":0,"bound_by":"vector"}]}})");
}

TEST(RunReportTest, FactsWithACommonPrefixFormOneJsonObject) {
  JsonWriter json;
  json.BeginObject();
  AppendFacts({{"au", "AU", 0.5},
               {"infeed.average", "Infeed", 0.25},
               {"steps", "Steps", int64_t{9}},
               {"infeed.max", "Most", 1.0},
               {"name", "Name", std::string("x")}},
              json);
  EXPECT_EQ(json.EndObject().text(),
            R"({"au":0.5,"infeed":{"average":0.25,"max":1},"steps":9,"name":"x"})");
}

TEST(RunReportTest, NotesAreAList) {
  RunReport report = {.mode = RunMode::kPaced};
  report.notes = {"a", "b"};
  EXPECT_EQ(ToJson(report), R"({"mode":"paced","notes":["a","b"]})");
}

TEST(TrainingRunTest, StepsAreNumberedOverTheEpochs) {
  EXPECT_EQ(EntryOf({.epoch = 2, .step = 3, .steps_per_epoch = 40}).step, 83);
}

TEST(TrainingRunTest, WithoutValidationTheJsonHasNoValidationField) {
  TrainingReport training = OneEpoch();
  training.epochs[0].validation.reset();
  const std::string json = ToJson(ReportOf(training, {}, {}));
  EXPECT_THAT(json, Not(HasSubstr("validation")));
  EXPECT_THAT(json, Not(HasSubstr("history")));
}

}  // namespace
}  // namespace systole::emulator
