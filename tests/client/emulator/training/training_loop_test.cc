#include "client/emulator/training/training_loop.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/emulator/model/model.h"
#include "client/emulator/training/training_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/training/toy_batch.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

constexpr int64_t kCores = 2, kBatch = 4;

Trainer MakeTrainer() {
  return *Trainer::Create(*ParseModel(R"(name: "toy" input: [12]
                     layers { dense { units: 16 } } layers { relu {} } layers { dense { units: 4 } }
                     loss { softmax_cross_entropy {} }
                     optimizer { learning_rate: 0.1 momentum: 0.9 })",
                                      "test"),
                          {.num_cores = kCores, .per_core_batch = kBatch});
}

// A feed of `steps` toy batches. Core c's slice arrives wait_ms[c] milliseconds after the step's
// call of Pop(0). In the first step these delays are ten times as long. Pop() moves the clock `now`
// on to the slice's arrival.
class ToyFeed {
 public:
  ToyFeed(int64_t steps, absl::Duration* now) : steps_(steps), now_(now), next_(kCores) {}

  absl::StatusOr<std::optional<InfeedStep>> Pop(int64_t core) {
    const int64_t step = next_[core]++;
    if (core == 0) wanted_at_ = *now_;
    const absl::Duration arrived_at =
        wanted_at_ + absl::Milliseconds(wait_ms[core]) * (step == 0 ? 10 : 1);
    *now_ = std::max(*now_, arrived_at);
    if (step == fails_at) return absl::UnavailableError("no server");
    if (core == 1 && step == ends_early_at) return std::nullopt;
    if (step >= steps_) return std::nullopt;
    auto batch = std::make_shared<std::vector<ToyCore<float>>>(
        ToyBatch(kCores, kBatch, {12}, 4, static_cast<uint32_t>(step)));
    return InfeedStep{.step = core == 1 && step == skips_at ? step + 1 : step,
                      .inputs = (*batch)[core].Inputs(),
                      .bytes = 1000 + core,
                      .arrived_at = arrived_at,
                      .owner = batch};
  }
  PopInfeed pop() {
    return [this](int64_t core) { return Pop(core); };
  }

  std::vector<int> wait_ms = {10, 30};
  int64_t fails_at = -1, ends_early_at = -1, skips_at = -1;

 private:
  const int64_t steps_;
  absl::Duration* const now_;
  std::vector<int64_t> next_;
  absl::Duration wanted_at_;
};

TEST(TrainingLoopTest, ReportHasTheStepsStallsAndBytesOfEachEpoch) {
  absl::Duration now;
  Trainer trainer = MakeTrainer();
  ToyFeed feed(6, &now), first(2, &now), second(2, &now);
  std::vector<ToyFeed*> passes = {&second, &first};
  std::vector<std::string> progress;
  const absl::StatusOr<TrainingReport> report = RunTraining(
      trainer, feed.pop(),
      {.epochs = 2,
       .steps_per_epoch = 3,
       .open_validation = [&]() -> absl::StatusOr<PopInfeed> {
         ToyFeed* pass = passes.back();
         passes.pop_back();
         return pass->pop();
       },
       .clock = [&now] { return now; },
       .on_step =
           [&](const TrainingProgress& p) {
             now += absl::Milliseconds(1);
             progress.push_back(absl::StrCat(p.epoch, ":", p.step, "/", p.steps_per_epoch));
           }});
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(progress, ElementsAre("0:0/3", "0:1/3", "0:2/3", "1:0/3", "1:1/3", "1:2/3"));
  EXPECT_EQ(trainer.steps(), 6);
  ASSERT_EQ(report->epochs.size(), 2u);
  const EpochReport& epoch = report->epochs[0];
  EXPECT_EQ(epoch.steps, 3);
  EXPECT_EQ(epoch.training.examples, 3 * kCores * kBatch);
  EXPECT_GT(epoch.training.loss, 0);
  EXPECT_EQ(epoch.validation->examples, 2 * kCores * kBatch);
  EXPECT_THAT(epoch.infeed_stall, ElementsAre(absl::Milliseconds(20), absl::Milliseconds(60)));
  EXPECT_EQ(epoch.duration, absl::Milliseconds(300 + 2 * 30 + 3));
  EXPECT_EQ(epoch.mean_step(), absl::Milliseconds(121));
  EXPECT_EQ(epoch.compute, absl::ZeroDuration());  // A step's compute does not move this clock.
  EXPECT_EQ(epoch.bytes_received, 5 * 2001);
  EXPECT_EQ(report->first_step_wait, absl::Milliseconds(300));
  EXPECT_THAT(report->infeed_stall(), ElementsAre(absl::Milliseconds(50), absl::Milliseconds(150)));
  EXPECT_EQ(report->training_time, now);
  EXPECT_EQ(report->bytes_received(), 10 * 2001);
}

// Resumes after a change of the global batch. In the current epoch, two steps of the old batch are
// done, which have the examples of one step of the new batch.
TEST(TrainingLoopTest, AnEpochResumesAtStepInEpochAndNotAtItsStepCount) {
  absl::Duration now;
  Trainer trainer = MakeTrainer();
  ToyFeed feed(5, &now), validation(1, &now);
  LoopState state;
  state.current.steps = 2;
  state.step_in_epoch = 1;
  std::vector<std::string> progress;
  std::vector<int64_t> saved;
  TrainingLoopOptions options = {.epochs = 2,
                                 .steps_per_epoch = 3,
                                 .clock = [&now] { return now; },
                                 .on_step =
                                     [&](const TrainingProgress& p) {
                                       progress.push_back(absl::StrCat(p.epoch, ":", p.step));
                                     },
                                 .resume_from = state,
                                 .save =
                                     [&](const LoopState& at) {
                                       saved.push_back(at.step_in_epoch);
                                       return absl::OkStatus();
                                     },
                                 .save_every = 1};
  const absl::StatusOr<TrainingReport> report = RunTraining(trainer, feed.pop(), options);
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(progress, ElementsAre("0:1", "0:2", "1:0", "1:1", "1:2"));
  EXPECT_THAT(saved, ElementsAre(2, 0, 1, 2, 0));
  EXPECT_EQ(report->epochs[0].steps, 4);
  EXPECT_EQ(report->epochs[1].steps, 3);

  // Resumes an epoch of which only the validation is left.
  options.epochs = 1;
  options.resume_from.step_in_epoch = 3;
  options.open_validation = [&]() -> absl::StatusOr<PopInfeed> { return validation.pop(); };
  Trainer idle = MakeTrainer();
  const absl::StatusOr<TrainingReport> validated = RunTraining(idle, feed.pop(), options);
  ASSERT_THAT(validated, IsOk());
  EXPECT_EQ(idle.steps(), 0);
  EXPECT_EQ(validated->epochs[0].steps, 2);
  EXPECT_EQ(validated->epochs[0].validation->examples, kCores * kBatch);
}

TEST(TrainingLoopTest, AStallIsBookedOnTheCoreThatWasLateNotOnTheFirstAsked) {
  absl::Duration now;
  Trainer trainer = MakeTrainer();
  ToyFeed feed(5, &now);
  feed.wait_ms = {40, 15};  // Core 1's slice arrives before Pop(1) is called.
  const absl::StatusOr<TrainingReport> report = RunTraining(
      trainer, feed.pop(), {.epochs = 1, .steps_per_epoch = 5, .clock = [&now] { return now; }});
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->infeed_stall(), ElementsAre(absl::Milliseconds(160), absl::Milliseconds(60)));
  ToyFeed early(5, &now);
  early.wait_ms = {40, -15};  // Core 1's slice arrives before Pop(0) is called.
  const absl::StatusOr<TrainingReport> fed = RunTraining(
      trainer, early.pop(), {.epochs = 1, .steps_per_epoch = 5, .clock = [&now] { return now; }});
  ASSERT_THAT(fed, IsOk());
  EXPECT_THAT(fed->infeed_stall(), ElementsAre(absl::Milliseconds(160), absl::ZeroDuration()));
}

TEST(TrainingLoopTest, ProgressReportsEachStepsStartAndStall) {
  absl::Duration now = absl::Seconds(50);
  Trainer trainer = MakeTrainer();
  ToyFeed feed(4, &now);
  std::vector<TrainingProgress> steps;
  ASSERT_THAT(RunTraining(trainer, feed.pop(),
                          {.epochs = 2,
                           .steps_per_epoch = 2,
                           // Every reading of the clock takes half a millisecond.
                           .clock = [&now] { return now += absl::Microseconds(500); },
                           .on_step = [&](const TrainingProgress& p) { steps.push_back(p); }}),
              IsOk());
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[0].infeed_stall, absl::ZeroDuration());
  EXPECT_EQ(steps[0].start, absl::Microseconds(2 * 500));  // Two readings of the clock.
  for (size_t step = 1; step < 4; ++step) {
    EXPECT_EQ(steps[step].infeed_stall, absl::Microseconds(30000 + 500));
    EXPECT_GT(steps[step].start, steps[step - 1].start + steps[step - 1].compute);
  }
  for (const TrainingProgress& step : steps) {
    EXPECT_EQ(step.compute, absl::Microseconds(500));
    EXPECT_EQ(step.learning_rate, 0.1f);
    EXPECT_GT(step.loss, 0);
  }
}

TEST(TrainingLoopTest, LossFallsOverEpochs) {
  absl::Duration now;
  Trainer trainer = MakeTrainer();
  ToyFeed feed(60, &now);
  const absl::StatusOr<TrainingReport> report = RunTraining(
      trainer, feed.pop(), {.epochs = 3, .steps_per_epoch = 20, .clock = [&now] { return now; }});
  ASSERT_THAT(report, IsOk());
  EXPECT_LT(report->epochs[2].training.loss, 0.75 * report->epochs[0].training.loss);
  EXPECT_GT(report->epochs[2].training.accuracy, 0.8);
  EXPECT_FALSE(report->epochs[2].validation.has_value());
}

TEST(TrainingLoopTest, FeedErrorsArePassedOnAndAnEarlyEndIsAnError) {
  absl::Duration now;
  const auto run = [&now](ToyFeed feed, TrainingLoopOptions options) {
    Trainer trainer = MakeTrainer();
    options.clock = [&now] { return now; };
    return RunTraining(trainer, feed.pop(), options).status();
  };
  ToyFeed feed(5, &now);
  EXPECT_THAT(run(feed, {.epochs = 2, .steps_per_epoch = 3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ended after 5 steps, want 6 (2 epochs of 3)")));
  feed.fails_at = 2;
  EXPECT_THAT(run(feed, {.epochs = 1, .steps_per_epoch = 5}),
              StatusIs(absl::StatusCode::kUnavailable, "no server"));
  ToyFeed uneven(5, &now);
  uneven.ends_early_at = 1;
  EXPECT_THAT(run(uneven, {.epochs = 1, .steps_per_epoch = 5}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("core 1's feed has ended, but core 0's feed has step 1")));
  ToyFeed skipping(5, &now);
  skipping.skips_at = 1;
  EXPECT_THAT(run(skipping, {.epochs = 1, .steps_per_epoch = 5}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("core 1 is given step 2, but core 0 step 1")));
  EXPECT_THAT(run(ToyFeed(5, &now), {.epochs = 1,
                                     .steps_per_epoch = 1,
                                     .open_validation = []() -> absl::StatusOr<PopInfeed> {
                                       return absl::NotFoundError("no such dataset");
                                     }}),
              StatusIs(absl::StatusCode::kNotFound, "no such dataset"));
}

TEST(TrainingLoopTest, OptionsOutOfRangeAreRefused) {
  absl::Duration now;
  Trainer trainer = MakeTrainer();
  ToyFeed feed(5, &now);
  const auto clock = [&now] { return now; };
  EXPECT_THAT(RunTraining(trainer, feed.pop(), {.epochs = 0, .clock = clock}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("epochs is 0")));
  EXPECT_THAT(RunTraining(trainer, feed.pop(), {.steps_per_epoch = 0, .clock = clock}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("steps_per_epoch is 0")));
  EXPECT_THAT(RunTraining(trainer, feed.pop(), {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("clock is absent")));
}

TrainingReport TwoEpochs() {
  TrainingReport report;
  report.model = "flowers \"x\"\n";
  report.num_cores = 2;
  report.per_core_batch = 8;
  report.training_time = absl::Seconds(12);
  report.first_step_wait = absl::Milliseconds(250);
  for (int i = 0; i < 2; ++i) {
    EpochReport epoch;
    epoch.steps = 40;
    epoch.training = {.examples = 2880, .loss = 1.5 - i, .accuracy = 0.5 + 0.25 * i};
    epoch.validation = Score{.examples = 725, .loss = 1, .accuracy = 0.5 + 0.375 * i};
    epoch.duration = absl::Seconds(4);
    epoch.compute = absl::Seconds(3);
    epoch.bytes_received = 1000000;
    epoch.infeed_stall = {absl::Milliseconds(500), absl::ZeroDuration()};
    report.epochs.push_back(epoch);
  }
  return report;
}

TEST(TrainingReportTest, TextEndsWithTheValidationAccuracy) {
  TrainingReport report = TwoEpochs();
  EXPECT_THAT(report.ToText(),
              AllOf(HasSubstr("    2     40   0.5000     0.750    1.0000"),
                    HasSubstr("infeed stall per core, s: 1.00 0.00"),
                    HasSubstr("2.0 MB received, 720 images/s"), HasSubstr("training took 12.0 s"),
                    EndsWith("\nvalidation accuracy 0.875\n")));
  EXPECT_THAT(report.ToText("About the feed."),
              EndsWith("took 12.0 s\nAbout the feed.\nvalidation accuracy 0.875\n"));
  report.epochs[1].validation.reset();
  EXPECT_THAT(report.ToText(), testing::Not(HasSubstr("validation accuracy")));
}

}  // namespace
}  // namespace systole::emulator
