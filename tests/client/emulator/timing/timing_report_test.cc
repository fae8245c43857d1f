#include "client/emulator/timing/timing_report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

absl::Duration Ms(int ms) { return absl::Milliseconds(ms); }

// Two steps of two cores. The first step does not count. In the second step, which lasts 8 ms,
// core 1 stalls for 2 ms.
TimingReport SmallReport() {
  TimingReport report = {
      .cores = {.model = "resnet50",
                .slice = "v2-8",
                .infeed = {.num_cores = 2, .step_time = Ms(6), .transfer_time = Ms(1)},
                .per_core_batch = 3,
                .slice_bytes = 1500000,
                .padded_slice_bytes = 4000000}};
  report.books.Add({.wait = Ms(500), .compute = Ms(6), .infeed_stall = {Ms(500), Ms(500)}});
  report.books.Add({.step = 1, .wait = Ms(2), .compute = Ms(6), .infeed_stall = {Ms(0), Ms(2)}});
  return report;
}

TEST(TimingReportTest, TextNamesModeAuAndVerdicts) {
  EXPECT_EQ(SmallReport().ToText(),
            "mode            replay\n"
            "cores           2 x 3 examples, resnet50 on v2-8, steps of 6.000 ms, infeed of 2 "
            "steps\n"
            "slice           1.5 MB a core, 4.0 MB as the chip stores it, 1.000 ms over its link\n"
            "AU              75.00 % (at least 70 %)\n"
            "infeed          25.00 % of a step on average (25.00 to 25.00): highly input-bound\n"
            "time            compute 0.006 s of 0.008 s, 1 steps, the first left out\n"
            "infeed stall    mean over cores 0.001 s, most 0.002 s (core 1)\n"
            "barrier         mean over cores 0.001 s, most 0.002 s (core 0)\n"
            "step arrival    p50 2.000 ms, p90 2.000 ms, p99 2.000 ms, max 2.000 ms after it was "
            "wanted\n"
            "first step      after 0.500 s\n");
}

TEST(TimingReportTest, TextOfAPacedRunShowsTheEmulatorsOwnTimeSeparately) {
  TimingReport report = SmallReport();
  report.overhead = PacingOverhead{.noticing = absl::Microseconds(30),
                                   .max_noticing = absl::Microseconds(20),
                                   .work = absl::Microseconds(6),
                                   .max_late = absl::Microseconds(4)};
  report.wall_au = 0.745;
  report.notes = {"the cores were not alone"};
  EXPECT_THAT(
      report.ToText(),
      AllOf(StartsWith("mode            paced\n"),
            HasSubstr("emulator        noticed a step after 15.0 us (at most 20.0), worked 3.0 us "
                      "a step, at most 4.0 us late; clock moved on by 0.000 s\n"),
            HasSubstr("AU, wall clock  74.50 %"), EndsWith("note: the cores were not alone\n")));
}

TEST(TimingReportTest, AnAuThatIsNotKnownIsNotZero) {
  TimingReport report;
  EXPECT_THAT(report.ToText(),
              AllOf(HasSubstr("AU              not known"), Not(HasSubstr("step arrival"))));
  report.books.Add({.wait = Ms(1), .compute = Ms(6), .infeed_stall = {Ms(1)}});
  report.books.AddOpenWait(Ms(3));
  EXPECT_THAT(report.ToText(),
              HasSubstr("AU              0.00 %: no step came in 0.003 s after the first one\n"));
}

}  // namespace
}  // namespace systole::emulator
