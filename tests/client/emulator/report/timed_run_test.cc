#include "client/emulator/report/timed_run.h"

#include <string>

#include "client/emulator/report/html_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

absl::Duration Ms(int64_t ms) { return absl::Milliseconds(ms); }

// Two cores and four steps of 30 ms. In all steps but the first, core 0 is late by 10 ms and core 1
// by 4 ms.
TimingReport TwoCores() {
  TimingReport timing = {.cores = {.model = "resnet50",
                                   .slice = "v2-8",
                                   .infeed = {.num_cores = 2, .step_time = Ms(30)},
                                   .per_core_batch = 16,
                                   .slice_bytes = 1000,
                                   .padded_slice_bytes = 2048},
                         .notes = {"an upper bound"}};
  for (int64_t step = 0; step < 4; ++step) {
    const absl::Duration wait = step == 0 ? Ms(500) : Ms(10);
    timing.books.Add({.step = step,
                      .wait = wait,
                      .start = Ms(40 * step + 500),
                      .compute = Ms(30),
                      .infeed_stall = {wait, step == 0 ? wait : Ms(4)}});
  }
  return timing;
}

TEST(TimedRunTest, AStepsWaitIsSplitIntoMeanStallAndMeanBarrier) {
  const StepEntry entry = EntryOf(StepRecord{.step = 7,
                                             .wait = Ms(10),
                                             .start = Ms(100),
                                             .compute = Ms(30),
                                             .infeed_stall = {Ms(10), Ms(4)}});
  EXPECT_EQ(entry.step, 7);
  EXPECT_EQ(entry.start, Ms(90));  // The time when the step was wanted.
  EXPECT_EQ(entry.infeed_stall, Ms(7));
  EXPECT_EQ(entry.barrier, Ms(3));
  EXPECT_EQ(entry.compute, Ms(30));
}

TEST(TimedRunTest, JsonOfAReplayHoldsItsTimingResults) {
  EXPECT_EQ(
      ToJson(ReportOf(TwoCores(), {})),
      R"({"mode":"replay","verdict":"highly input-bound: waiting for data 25.0 % of the time",)"
      R"("model":"resnet50","slice":"v2-8","cores":2,"cores_per_chip":1,)"
      R"("per_core_batch":16,"step_seconds":0.03,"transfer_seconds":0,"queue_depth":2,)"
      R"("slice_bytes":1000,"padded_slice_bytes":2048,)"
      R"("core_demand_examples_per_second":533.3333333333334,"au":0.75,)"
      R"("au_verdict":"at least 70 %","infeed":{"average":0.25,"min":0.25,"max":0.25,)"
      R"("verdict":"highly input-bound"},"examples_per_second":800,"compute_seconds":0.09,)"
      R"("total_seconds":0.12,"open_wait_seconds":0,"steps":4,"counted_steps":3,"first_step_wait_seconds":0.5,)"
      R"("step_arrival_seconds":{"p50":0.01,"p90":0.01,"p99":0.01,"max":0.01},)"
      R"("infeed_stall_seconds":[0.03,0.012],"barrier_seconds":[0,0.018],)"
      R"("notes":["an upper bound"]})");
}

// The words and the limits come from timing/utilisation.h.
TEST(TimedRunTest, TheVerdictSaysHowMuchOfTheTimeIsLostAndHowBadThatIs) {
  const auto verdict = [](double infeed) {
    return VerdictOf({.au = 1 - infeed, .infeed = InfeedFraction{.average = infeed}});
  };
  using Grade = Verdict::Grade;
  EXPECT_EQ(verdict(0.36).text, "highly input-bound: waiting for data 36.0 % of the time");
  EXPECT_EQ(verdict(0.36).grade, Grade::kBad);
  EXPECT_EQ(verdict(0.2).grade, Grade::kBad);
  EXPECT_EQ(verdict(0.1999).grade, Grade::kFair);
  EXPECT_EQ(verdict(0.05).text, "moderately input-bound: waiting for data 5.00 % of the time");
  EXPECT_EQ(verdict(0.05).grade, Grade::kFair);
  EXPECT_EQ(verdict(0.021).text, "not input-bound: waiting for data 2.10 % of the time");
  EXPECT_EQ(verdict(0.0499).grade, Grade::kGood);
  EXPECT_EQ(VerdictOf({}).grade, Grade::kNeutral);
  EXPECT_THAT(VerdictOf({}).text, HasSubstr("not known"));
  EXPECT_EQ(VerdictOf({.au = 0}).grade, Grade::kBad);
  EXPECT_THAT(VerdictOf({.au = 0}).text, HasSubstr("no step came"));
}

TEST(TimedRunTest, JsonOfAPacedRunHoldsTheEmulatorsOverhead) {
  TimingReport timing = TwoCores();
  timing.overhead = PacingOverhead{.noticing = absl::Microseconds(80), .max_late = Ms(1)};
  timing.wall_au = 0.74;
  EXPECT_THAT(ToJson(ReportOf(timing, {})),
              AllOf(HasSubstr("{\"mode\":\"paced\""),
                    HasSubstr("\"emulator\":{\"noticing_seconds\":8e-05,"),
                    HasSubstr("\"max_late_seconds\":0.001,"), HasSubstr("\"wall_au\":0.74}")));
}

TEST(TimedRunTest, WhatIsNotKnownIsNullAndNotZero) {
  TimingReport timing = TwoCores();
  timing.books = {};
  const RunReport report = ReportOf(timing, {});
  EXPECT_THAT(ToJson(report), AllOf(HasSubstr("\"au\":null,\"au_verdict\":\"not known\""),
                                    HasSubstr("\"infeed\":{\"average\":null"),
                                    HasSubstr("\"examples_per_second\":null")));
  EXPECT_THAT(ToHtml(report), HasSubstr("data-key=\"au\" value=\"null\">n/a</data>"));
}

TEST(TimedRunTest, HtmlPageListsTheNotes) {
  EXPECT_THAT(ToHtml(ReportOf(TwoCores(), {})),
              AllOf(HasSubstr("<li>an upper bound</li>"), Not(HasSubstr("plot-roofline"))));
}

TEST(TimedRunTest, RooflineHasTheLayersAndPeaksOfTheChipProgram) {
  ChipProgram program;
  program.peak_flops = 100;
  program.memory_bytes_per_s = 10;
  program.layers.push_back(
      {.name = "conv1", .flops = 64, .memory_bytes = 16, .seconds = 2, .bound = Bound::kMemory});
  const Roofline roofline = RooflineOf(program);
  EXPECT_EQ(roofline.peak_flops_per_second, 100);
  EXPECT_EQ(roofline.bytes_per_second, 10);
  ASSERT_EQ(roofline.layers.size(), 1u);
  EXPECT_EQ(roofline.layers[0].name, "conv1");
  EXPECT_EQ(roofline.layers[0].flops_per_byte(), 4);
  EXPECT_EQ(roofline.layers[0].flops_per_second(), 32);
  EXPECT_EQ(roofline.layers[0].bound, Bound::kMemory);
}

}  // namespace
}  // namespace systole::emulator
