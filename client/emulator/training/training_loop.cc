#include "client/emulator/training/training_loop.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/emulator/model/optimizer.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

// The slices of one step, one per core; empty at the end of the feed.
struct PoppedStep {
  std::vector<InfeedStep> slices;
  std::vector<CoreInputs> inputs;
  std::vector<absl::Duration> waits;  // Per core, for its own slice.
  absl::Duration wait;                // For all of them.
  int64_t bytes = 0;
};

class Loop {
 public:
  Loop(Trainer& trainer, const TrainingLoopOptions& options)
      : trainer_(trainer), options_(options), num_cores_(trainer.options().num_cores) {}

  absl::StatusOr<TrainingReport> Run(const PopInfeed& pop);

 private:
  absl::StatusOr<PoppedStep> Pop(const PopInfeed& pop) const;
  absl::StatusOr<EpochReport> TrainEpoch(const PopInfeed& pop, int64_t epoch);
  absl::Status Validate(EpochReport& report) const;

  Trainer& trainer_;
  const TrainingLoopOptions& options_;
  const int64_t num_cores_;
  absl::Duration start_;
  absl::Duration first_step_wait_;
};

// Sums of what Score holds means of.
class Scorer {
 public:
  void Add(const StepResult& result) {
    examples_ += result.valid;
    correct_ += result.correct;
    loss_ += result.loss * static_cast<double>(result.valid);
  }
  Score score() const {
    if (examples_ == 0) return {};
    const auto n = static_cast<double>(examples_);
    return {
        .examples = examples_, .loss = loss_ / n, .accuracy = static_cast<double>(correct_) / n};
  }

 private:
  int64_t examples_ = 0, correct_ = 0;
  double loss_ = 0;
};

absl::StatusOr<PoppedStep> Loop::Pop(const PopInfeed& pop) const {
  PoppedStep popped;
  const absl::Duration wanted_at = options_.clock();
  for (int64_t core = 0; core < num_cores_; ++core) {
    absl::StatusOr<std::optional<InfeedStep>> next = pop(core);
    if (!next.ok()) return next.status();
    if (!next->has_value()) {
      if (core == 0) return PoppedStep{};
      return absl::FailedPreconditionError(absl::StrCat(
          "core ", core, "'s feed has ended, core 0's has a step ", popped.slices[0].step));
    }
    InfeedStep& slice = **next;
    if (core > 0 && slice.step != popped.slices[0].step) {
      return absl::FailedPreconditionError(absl::StrCat(
          "core ", core, " is given step ", slice.step, ", core 0 step ", popped.slices[0].step));
    }
    popped.waits.push_back(std::max(absl::ZeroDuration(), slice.arrived_at - wanted_at));
    popped.bytes += slice.bytes;
    popped.inputs.push_back(slice.inputs);
    popped.slices.push_back(std::move(slice));
  }
  popped.wait = options_.clock() - wanted_at;
  return popped;
}

absl::StatusOr<EpochReport> Loop::TrainEpoch(const PopInfeed& pop, int64_t epoch) {
  EpochReport report;
  report.infeed_stall.resize(static_cast<size_t>(num_cores_));
  Scorer scorer;
  const absl::Duration start = options_.clock();
  for (int64_t step = 0; step < options_.steps_per_epoch; ++step) {
    SYSTOLE_ASSIGN_OR_RETURN(const PoppedStep popped, Pop(pop));
    if (popped.slices.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the feed ended after ", epoch * options_.steps_per_epoch + step, " steps, want ",
          options_.epochs * options_.steps_per_epoch, " (", options_.epochs, " epochs of ",
          options_.steps_per_epoch, "); raise `epochs` in the feed spec (0: without end)"));
    }
    report.bytes_received += popped.bytes;
    const bool first = epoch == 0 && step == 0;
    if (first) {
      first_step_wait_ = popped.wait;
    } else {
      for (size_t core = 0; core < popped.waits.size(); ++core) {
        report.infeed_stall[core] += popped.waits[core];
      }
    }
    const double learning_rate = LearningRate(trainer_.model().optimizer, trainer_.steps());
    const absl::Duration before = options_.clock();
    SYSTOLE_ASSIGN_OR_RETURN(const StepResult result, trainer_.Step(popped.inputs));
    const absl::Duration compute = options_.clock() - before;
    report.compute += compute;
    scorer.Add(result);
    ++report.steps;
    if (options_.on_step != nullptr) {
      options_.on_step({.epoch = epoch,
                        .step = step,
                        .steps_per_epoch = options_.steps_per_epoch,
                        .loss = result.loss,
                        .accuracy = result.valid == 0 ? 0.0
                                                      : static_cast<double>(result.correct) /
                                                            static_cast<double>(result.valid),
                        .learning_rate = learning_rate,
                        .start = before - popped.wait - start_,
                        .infeed_stall = first ? absl::ZeroDuration() : popped.wait,
                        .compute = compute});
    }
  }
  report.duration = options_.clock() - start;
  report.training = scorer.score();
  return report;
}

absl::Status Loop::Validate(EpochReport& report) const {
  SYSTOLE_ASSIGN_OR_RETURN(const PopInfeed pop, options_.open_validation());
  Scorer scorer;
  while (true) {
    SYSTOLE_ASSIGN_OR_RETURN(const PoppedStep popped, Pop(pop));
    if (popped.slices.empty()) break;
    report.bytes_received += popped.bytes;
    SYSTOLE_ASSIGN_OR_RETURN(const StepResult result, trainer_.Evaluate(popped.inputs));
    scorer.Add(result);
  }
  report.validation = scorer.score();
  return absl::OkStatus();
}

absl::StatusOr<TrainingReport> Loop::Run(const PopInfeed& pop) {
  start_ = options_.clock();
  TrainingReport report;
  report.model = trainer_.model().name;
  report.numerics = std::string(NumericsName(trainer_.options().numerics));
  report.num_cores = num_cores_;
  report.per_core_batch = trainer_.options().per_core_batch;
  for (int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
    SYSTOLE_ASSIGN_OR_RETURN(EpochReport trained, TrainEpoch(pop, epoch));
    if (options_.open_validation != nullptr) SYSTOLE_RETURN_IF_ERROR(Validate(trained));
    report.epochs.push_back(std::move(trained));
  }
  report.first_step_wait = first_step_wait_;
  report.training_time = options_.clock() - start_;
  return report;
}

}  // namespace

absl::StatusOr<TrainingReport> RunTraining(Trainer& trainer, const PopInfeed& pop,
                                           const TrainingLoopOptions& options) {
  if (options.epochs < 1 || options.steps_per_epoch < 1) {
    return absl::InvalidArgumentError(absl::StrCat("TrainingLoopOptions.epochs is ", options.epochs,
                                                   ", steps_per_epoch is ", options.steps_per_epoch,
                                                   "; want at least 1"));
  }
  if (options.clock == nullptr) {
    return absl::InvalidArgumentError("TrainingLoopOptions.clock is absent");
  }
  return Loop(trainer, options).Run(pop);
}

}  // namespace systole::emulator
