#include "client/emulator/report/training_run.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace systole::emulator {

StepEntry EntryOf(const TrainingProgress& progress) {
  return {.step = progress.epoch * progress.steps_per_epoch + progress.step,
          .start = progress.start,
          .infeed_stall = progress.infeed_stall,
          .compute = progress.compute,
          .loss = progress.loss,
          .accuracy = progress.accuracy,
          .learning_rate = progress.learning_rate};
}

namespace {

// The verdict says what was learnt, because a training run says nothing about a chip's time.
Verdict VerdictOf(const EpochReport& last, size_t epochs) {
  if (!std::isfinite(last.training.loss)) {
    return {.text = "diverged: the loss of the last epoch is not a number",
            .grade = Verdict::Grade::kBad};
  }
  const std::string after = absl::StrCat(" after ", epochs, epochs == 1 ? " epoch" : " epochs");
  return {.text = last.validation.has_value()
                      ? absl::StrCat("validation accuracy ",
                                     NumberText(last.validation->accuracy, Unit::kFraction), after)
                      : absl::StrCat("training loss ", NumberText(last.training.loss, Unit::kCount),
                                     after)};
}

}  // namespace

RunReport ReportOf(const TrainingReport& training, const StepHistory& steps,
                   const std::vector<Fact>& facts) {
  RunReport report = {.mode = RunMode::kFunctional, .epochs = training.epochs, .steps = steps};
  report.facts = {
      {"model", "Model", training.model},
      {"numerics", "Numerics", training.numerics},
      {"num_cores", "Cores", training.num_cores, Unit::kCount},
      {"per_core_batch", "Batch per core", training.per_core_batch, Unit::kCount},
  };
  report.facts.insert(report.facts.end(), facts.begin(), facts.end());
  if (!training.epochs.empty()) {
    const EpochReport& last = training.epochs.back();
    report.verdict = VerdictOf(last, training.epochs.size());
    if (last.validation.has_value()) {
      report.results.push_back({"validation_accuracy", "Validation accuracy",
                                last.validation->accuracy, Unit::kFraction, true});
    }
    report.results.push_back(
        {"training_loss", "Training loss, last epoch", last.training.loss, Unit::kCount, true});
  }
  const std::vector<Fact> sums = {
      {"images_per_second", "Images per second, on this host", training.images_per_second(),
       Unit::kCount, true},
      {"training_seconds", "Training took", absl::ToDoubleSeconds(training.training_time),
       Unit::kSeconds, true},
      {"first_step_wait_seconds", "Wait for the first step",
       absl::ToDoubleSeconds(training.first_step_wait), Unit::kSeconds, true},
      {"bytes_received", "Received", training.bytes_received(), Unit::kBytes, true},
  };
  report.results.insert(report.results.end(), sums.begin(), sums.end());
  for (const absl::Duration stall : training.infeed_stall()) {
    report.cores.push_back({.infeed_stall = stall});
  }
  return report;
}

}  // namespace systole::emulator
