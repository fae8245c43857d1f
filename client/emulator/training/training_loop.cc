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
  std::vector<absl::Duration> waits;  // Each core's wait for its own slice.
  absl::Duration wait;                // The wait until every core had its slice.
  int64_t bytes = 0;
};

class Loop {
 public:
  Loop(Trainer& trainer, const TrainingLoopOptions& options)
      : trainer_(trainer),
        options_(options),
        num_cores_(trainer.options().num_cores),
        state_(options.resume_from) {}

  absl::StatusOr<TrainingReport> Run(const PopInfeed& pop);

 private:
  absl::StatusOr<PoppedStep> Pop(const PopInfeed& pop) const;
  absl::Status TrainEpoch(const PopInfeed& pop);
  absl::Status Validate();
  // Adds the time since the last call to the run's time and, if `training`, to the epoch's.
  void BookTime(bool training);
  absl::Status Save();

  Trainer& trainer_;
  const TrainingLoopOptions& options_;
  const int64_t num_cores_;
  LoopState state_;
  absl::Duration booked_until_;
  bool is_first_step_ = true;
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
          "core ", core, "'s feed has ended, but core 0's feed has step ", popped.slices[0].step));
    }
    InfeedStep& slice = **next;
    if (core > 0 && slice.step != popped.slices[0].step) {
      return absl::FailedPreconditionError(absl::StrCat("core ", core, " is given step ",
                                                        slice.step, ", but core 0 step ",
                                                        popped.slices[0].step));
    }
    popped.waits.push_back(std::max(absl::ZeroDuration(), slice.arrived_at - wanted_at));
    popped.bytes += slice.bytes;
    popped.inputs.push_back(slice.inputs);
    popped.slices.push_back(std::move(slice));
  }
  popped.wait = options_.clock() - wanted_at;
  return popped;
}

void Loop::BookTime(bool training) {
  const absl::Duration now = options_.clock();
  state_.training_time += now - booked_until_;
  if (training) state_.current.duration += now - booked_until_;
  booked_until_ = now;
}

absl::Status Loop::Save() {
  if (options_.save == nullptr) return absl::OkStatus();
  SYSTOLE_RETURN_IF_ERROR(options_.save(state_));
  BookTime(/*training=*/false);
  return absl::OkStatus();
}

absl::Status Loop::TrainEpoch(const PopInfeed& pop) {
  const auto epoch = static_cast<int64_t>(state_.epochs.size());
  EpochReport& report = state_.current;
  report.infeed_stall.resize(static_cast<size_t>(num_cores_));
  while (state_.step_in_epoch < options_.steps_per_epoch) {
    const int64_t step = state_.step_in_epoch;
    SYSTOLE_ASSIGN_OR_RETURN(const PoppedStep popped, Pop(pop));
    if (popped.slices.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the feed ended after ", epoch * options_.steps_per_epoch + step, " steps, want ",
          options_.epochs * options_.steps_per_epoch, " (", options_.epochs, " epochs of ",
          options_.steps_per_epoch, "); raise `epochs` in the feed spec (0: without end)"));
    }
    report.bytes_received += popped.bytes;
    const bool first = std::exchange(is_first_step_, false);
    if (first) {
      state_.first_step_wait += popped.wait;
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
    state_.sums.Add(result);
    ++report.steps;
    ++state_.step_in_epoch;
    if (options_.on_step != nullptr) {
      options_.on_step({.epoch = epoch,
                        .step = step,
                        .steps_per_epoch = options_.steps_per_epoch,
                        .loss = result.loss,
                        .accuracy = result.valid == 0 ? 0.0
                                                      : static_cast<double>(result.correct) /
                                                            static_cast<double>(result.valid),
                        .learning_rate = learning_rate,
                        .start = state_.training_time + (before - popped.wait - booked_until_),
                        .infeed_stall = first ? absl::ZeroDuration() : popped.wait,
                        .compute = compute});
    }
    BookTime(/*training=*/true);
    // After the epoch's last step, Run() saves the state.
    const bool is_due = options_.save_every > 0 && trainer_.steps() % options_.save_every == 0;
    if (is_due && state_.step_in_epoch < options_.steps_per_epoch) SYSTOLE_RETURN_IF_ERROR(Save());
  }
  report.training = state_.sums.score();
  return absl::OkStatus();
}

absl::Status Loop::Validate() {
  SYSTOLE_ASSIGN_OR_RETURN(const PopInfeed pop, options_.open_validation());
  ScoreSums sums;
  while (true) {
    SYSTOLE_ASSIGN_OR_RETURN(const PoppedStep popped, Pop(pop));
    if (popped.slices.empty()) break;
    state_.current.bytes_received += popped.bytes;
    SYSTOLE_ASSIGN_OR_RETURN(const StepResult result, trainer_.Evaluate(popped.inputs));
    sums.Add(result);
  }
  state_.current.validation = sums.score();
  BookTime(/*training=*/false);
  return absl::OkStatus();
}

absl::StatusOr<TrainingReport> Loop::Run(const PopInfeed& pop) {
  booked_until_ = options_.clock();
  while (static_cast<int64_t>(state_.epochs.size()) < options_.epochs) {
    SYSTOLE_RETURN_IF_ERROR(TrainEpoch(pop));
    if (options_.open_validation != nullptr) SYSTOLE_RETURN_IF_ERROR(Validate());
    state_.epochs.push_back(std::exchange(state_.current, {}));
    state_.sums = {};
    state_.step_in_epoch = 0;
    SYSTOLE_RETURN_IF_ERROR(Save());
  }
  TrainingReport report;
  report.model = trainer_.model().name;
  report.numerics = std::string(NumericsName(trainer_.options().numerics));
  report.num_cores = num_cores_;
  report.per_core_batch = trainer_.options().per_core_batch;
  BookTime(/*training=*/false);
  report.epochs = std::move(state_.epochs);
  report.first_step_wait = state_.first_step_wait;
  report.training_time = state_.training_time;
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
  if (options.save_every < 0) {
    return absl::InvalidArgumentError(absl::StrCat("TrainingLoopOptions.save_every is ",
                                                   options.save_every, ", want at least 0"));
  }
  const auto ended = static_cast<int64_t>(options.resume_from.epochs.size());
  if (ended >= options.epochs) {
    return absl::InvalidArgumentError(absl::StrCat(
        ended, " epochs have ended, and TrainingLoopOptions.epochs is only ", options.epochs));
  }
  return Loop(trainer, options).Run(pop);
}

}  // namespace systole::emulator
