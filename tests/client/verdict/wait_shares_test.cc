// A trainer and a feed on a clock that the test moves.
#include "client/verdict/wait_shares.h"

#include <functional>
#include <optional>

#include "absl/time/time.h"
#include "client/verdict/step_spans.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

absl::Duration Ms(double milliseconds) { return absl::Milliseconds(milliseconds); }

// How a step comes: it arrives `late` after the trainer asks for it, or before that if `late` is
// negative. It is then handled for the time `handled`.
struct Arrival {
  absl::Duration late;
  StageTimes stages;
  absl::Duration handled = absl::ZeroDuration();
  bool says_stages = true;
};

class Simulation {
 public:
  explicit Simulation(WaitCause rest = WaitCause::kWire) : shares_(rest) {}

  // The trainer works for `work` on each of `steps` steps.
  void Run(int steps, absl::Duration work, const Arrival& arrival) {
    for (int i = 0; i < steps; ++i) {
      now_ += work;
      const absl::Duration arrived = now_ + arrival.late;
      const absl::Duration ready = arrived + arrival.handled;
      StepSpans spans;
      spans.BeginSlice(arrival.says_stages ? std::make_optional(arrival.stages) : std::nullopt,
                       arrived, ready);
      spans.Complete();
      const absl::Duration waited = std::max(absl::ZeroDuration(), ready - now_);
      now_ += waited;
      shares_.Take({.at = now_, .waited = waited, .ready_at = spans.complete_at()}, spans.spans());
    }
  }
  FeedWaits waits() const { return shares_.waits(); }
  // The result of WaitShares::Lately() when the trainer has worked for `worked` since its last step
  // and has then waited for `waited`.
  std::optional<LatelyWaited> Lately(absl::Duration worked, absl::Duration waited) const {
    return shares_.Lately({.at = now_ + worked + waited, .waited = waited, .ready_at = now_});
  }
  FeedVerdict verdict() const { return shares_.waits().verdict; }

 private:
  absl::Duration now_ = absl::Hours(7);
  WaitShares shares_;
};

TEST(WaitSharesTest, NothingIsKnownBeforeTheSecondStep) {
  Simulation simulation;
  EXPECT_EQ(simulation.verdict().limit, FeedLimit::kUnknown);
  simulation.Run(1, Ms(10), {.late = absl::Seconds(60), .stages = {.make = Ms(10)}});
  EXPECT_EQ(simulation.verdict().limit, FeedLimit::kUnknown);
  EXPECT_EQ(simulation.verdict().share, 0);
  EXPECT_EQ(simulation.waits().times.seconds, 0);
}

TEST(WaitSharesTest, StorageIsTheLimitWhileRecordsAreRead) {
  Simulation simulation;
  simulation.Run(11, Ms(50), {.late = Ms(50), .stages = {.read = Ms(40), .make = Ms(10)}});
  EXPECT_EQ(simulation.verdict().limit, FeedLimit::kStorage);
  EXPECT_NEAR(simulation.verdict().waits, 0.5, 1e-9);
  EXPECT_NEAR(simulation.verdict().share, 0.8, 1e-9);
  EXPECT_NEAR(simulation.waits().times.seconds, 1, 1e-9);
  EXPECT_NEAR(simulation.waits().times.of(WaitCause::kStorage), 0.4, 1e-9);
  EXPECT_NEAR(simulation.waits().times.of(WaitCause::kDecode), 0.1, 1e-9);
}

TEST(WaitSharesTest, DecodeIsTheLimitWhileExamplesAreMadeAndTheCostliestOutputIsNamed) {
  Simulation simulation;
  simulation.Run(5, Ms(50), {.late = Ms(50), .stages = {.make = Ms(80), .costliest = 3}});
  simulation.Run(2, Ms(50), {.late = Ms(50), .stages = {.make = Ms(80), .costliest = 1}});
  EXPECT_EQ(simulation.verdict().limit, FeedLimit::kDecode);
  EXPECT_EQ(simulation.verdict().output, 3);
  EXPECT_NEAR(simulation.verdict().share, 1, 1e-9);
}

TEST(WaitSharesTest, TheOperationIsTheOneLastNamedForTheCostliestOutput) {
  Simulation simulation;
  const auto run = [&simulation](int steps, int output, int operation) {
    simulation.Run(
        steps, Ms(50),
        {.late = Ms(50), .stages = {.make = Ms(80), .costliest = output, .operation = operation}});
  };
  run(5, 3, -1);  // The server is of an older release, or has not timed an operation yet.
  EXPECT_EQ(simulation.verdict().output, 3);
  EXPECT_EQ(simulation.verdict().operation, -1);
  run(2, 3, 0);
  run(2, 1, 7);
  EXPECT_EQ(simulation.verdict().output, 3);
  EXPECT_EQ(simulation.verdict().operation, 0);
  run(1, 3, 2);
  run(3, 3, -1);
  EXPECT_EQ(simulation.verdict().operation, 2);
  EXPECT_EQ(simulation.waits().recent.operation, 2);
  // If decode is not the limit, no operation is named.
  simulation.Run(100, Ms(50), {.late = Ms(50), .stages = {.read = Ms(50)}});
  EXPECT_EQ(simulation.verdict().limit, FeedLimit::kStorage);
  EXPECT_EQ(simulation.verdict().operation, -1);
}

TEST(WaitSharesTest, OnlyTheStagesDuringTheWaitCount) {
  Simulation simulation;
  // Reading took longest, but the trainer was busy during the reading.
  simulation.Run(5, Ms(500), {.late = Ms(20), .stages = {.read = Ms(400), .make = Ms(20)}});
  EXPECT_EQ(simulation.verdict().limit, FeedLimit::kDecode);
  EXPECT_NEAR(simulation.verdict().share, 1, 1e-9);
}

TEST(WaitSharesTest, WireIsTheLimitIfSlicesWaitToBeSent) {
  Simulation simulation;
  simulation.Run(5, Ms(50), {.late = Ms(50), .stages = {.make = Ms(10), .wait = Ms(45)}});
  EXPECT_EQ(simulation.verdict().limit, FeedLimit::kWire);
  EXPECT_NEAR(simulation.verdict().share, 0.9, 1e-9);
}

TEST(WaitSharesTest, WireIsTheLimitIfServersWereIdleForMostOfTheWait) {
  Simulation simulation;
  simulation.Run(5, Ms(50), {.late = Ms(50), .stages = {.make = Ms(10)}});
  EXPECT_EQ(simulation.verdict().limit, FeedLimit::kWire);
  EXPECT_NEAR(simulation.verdict().share, 0.8, 1e-9);
}

TEST(WaitSharesTest, ClientIsTheLimitIfHandlingAStepTakesMostOfTheWait) {
  Simulation simulation;
  simulation.Run(5, Ms(50), {.late = Ms(10), .stages = {.make = Ms(50)}, .handled = Ms(30)});
  EXPECT_EQ(simulation.verdict().limit, FeedLimit::kClient);
  EXPECT_NEAR(simulation.verdict().share, 0.75, 1e-9);
}

TEST(WaitSharesTest, ClientIsTheLimitIfAFinishedStepIsNotHandedOn) {
  WaitShares shares(WaitCause::kWire);
  StepSpans spans;
  spans.BeginSlice(StageTimes{.make = Ms(10)}, Ms(1010), Ms(1010));
  spans.Complete();
  shares.Take({.at = Ms(1000), .waited = absl::ZeroDuration(), .ready_at = Ms(0)}, {});
  shares.Take({.at = Ms(1040), .waited = Ms(40), .ready_at = Ms(1010)}, spans.spans());
  EXPECT_EQ(shares.waits().verdict.limit, FeedLimit::kClient);
  EXPECT_NEAR(shares.waits().verdict.share, 0.75, 1e-9);
}

TEST(WaitSharesTest, WithoutAServerUnexplainedTimeCountsAsClient) {
  Simulation simulation(WaitCause::kClient);
  simulation.Run(5, Ms(50), {.late = Ms(50), .stages = {.make = Ms(10)}});
  EXPECT_EQ(simulation.verdict().limit, FeedLimit::kClient);
}

TEST(WaitSharesTest, TrainerIsTheLimitIfStepsLieReady) {
  Simulation simulation;
  simulation.Run(5, Ms(50), {.late = Ms(-30), .stages = {.make = Ms(80)}});
  EXPECT_EQ(simulation.verdict().limit, FeedLimit::kTrainer);
  EXPECT_EQ(simulation.verdict().waits, 0);
  EXPECT_EQ(simulation.verdict().share, 0);
}

TEST(WaitSharesTest, OneLongPauseOfTheTrainerIsNotTakenForStepsThatLieReady) {
  Simulation simulation;
  simulation.Run(100, Ms(50), {.late = Ms(-1), .stages = {.make = Ms(80)}});
  simulation.Run(1, absl::Seconds(2), {.late = absl::Seconds(-600), .stages = {.make = Ms(80)}});
  EXPECT_EQ(simulation.verdict().limit, FeedLimit::kNothing);
}

TEST(WaitSharesTest, NothingIsTheLimitIfStepsComeJustInTime) {
  Simulation simulation;
  simulation.Run(5, Ms(50), {.late = Ms(-2), .stages = {.make = Ms(80)}});
  EXPECT_EQ(simulation.verdict().limit, FeedLimit::kNothing);
  // A wait of 40 us a step is the time to wake a thread, so it names no limit, however short the
  // steps are.
  Simulation quick;
  quick.Run(5, Ms(0.1), {.late = Ms(0.04), .stages = {.make = Ms(80)}});
  EXPECT_EQ(quick.verdict().limit, FeedLimit::kNothing);
  EXPECT_GT(quick.verdict().waits, 0.2);
}

TEST(WaitSharesTest, WaitsForServersThatReportNoStagesHaveAnUnknownCause) {
  Simulation simulation;
  simulation.Run(5, Ms(50), {.late = Ms(40), .handled = Ms(10), .says_stages = false});
  EXPECT_EQ(simulation.verdict().limit, FeedLimit::kUnknown);
  EXPECT_NEAR(simulation.verdict().share, 0.8, 1e-9);
  EXPECT_NEAR(simulation.waits().times.of(WaitCause::kUnknown), 0.16, 1e-9);
}

TEST(WaitSharesTest, OldWaitsCountInTheTotalButNotInTheRecentVerdict) {
  Simulation simulation;
  simulation.Run(1000, Ms(50), {.late = Ms(50), .stages = {.read = Ms(50)}});
  simulation.Run(300, Ms(50), {.late = Ms(50), .stages = {.make = Ms(50)}});
  EXPECT_EQ(simulation.waits().verdict.limit, FeedLimit::kStorage);
  EXPECT_EQ(simulation.waits().recent.limit, FeedLimit::kDecode);
  EXPECT_GT(simulation.waits().recent.share, 0.95);
}

TEST(WaitSharesTest, WaitsLongerThanTheTimeBetweenTwoStepsAreCutDown) {
  WaitShares shares(WaitCause::kWire);
  shares.Take({.at = Ms(1000), .waited = absl::ZeroDuration(), .ready_at = Ms(0)}, {});
  shares.Take({.at = Ms(1010), .waited = absl::Hours(1), .ready_at = Ms(0)}, {});
  EXPECT_NEAR(shares.waits().times.all_waited(), 0.01, 1e-9);
  EXPECT_NEAR(shares.waits().verdict.waits, 1, 1e-9);
}

TEST(WaitSharesTest, AnOutputThatNoSpecCanHaveIsNotCounted) {
  Simulation simulation;
  simulation.Run(5, Ms(50), {.late = Ms(50), .stages = {.make = Ms(80), .costliest = 1 << 30}});
  EXPECT_EQ(simulation.verdict().limit, FeedLimit::kDecode);
  EXPECT_EQ(simulation.verdict().output, -1);
  EXPECT_EQ(simulation.verdict().operation, -1);
}

TEST(WaitSharesTest, LatelyIncludesTheStepInProgress) {
  Simulation simulation;
  EXPECT_FALSE(simulation.Lately(Ms(0), Ms(0)).has_value());
  simulation.Run(100, Ms(100), {.late = Ms(100), .stages = {.make = Ms(100), .costliest = 2}});
  const FeedVerdict before = simulation.verdict();
  std::optional<LatelyWaited> lately = simulation.Lately(Ms(0), Ms(0));
  ASSERT_TRUE(lately.has_value());
  EXPECT_NEAR(lately->verdict.waits, 0.5, 1e-9);
  EXPECT_EQ(lately->verdict.limit, FeedLimit::kDecode);
  EXPECT_EQ(lately->verdict.output, 2);
  EXPECT_NEAR(lately->steps_per_second, 5, 0.1);
  // The trainer works for a long time, as during a validation.
  lately = simulation.Lately(absl::Seconds(60), Ms(0));
  EXPECT_LT(lately->verdict.waits, 0.01);
  EXPECT_NEAR(lately->steps_per_second, 0, 0.1);
  // What holds up the next step is not known yet.
  lately = simulation.Lately(Ms(0), absl::Seconds(60));
  EXPECT_GT(lately->verdict.waits, 0.95);
  EXPECT_EQ(lately->verdict.limit, FeedLimit::kUnknown);
  EXPECT_EQ(simulation.verdict().waits, before.waits);
}

}  // namespace
}  // namespace systole
