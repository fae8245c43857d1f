// The loop around the trainer. It takes one step from every core's infeed, trains on it, validates
// after each epoch, and keeps the run's sums. Infeeds and clock are functions, so that this code
// needs no network and tests can set the time.
//
// Single-thread.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_TRAINING_LOOP_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_TRAINING_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/emulator/training/loop_state.h"
#include "client/emulator/training/trainer.h"
#include "client/emulator/training/training_report.h"

namespace systole::emulator {

// One core's slice of one step, as an infeed queue gives it.
struct InfeedStep {
  int64_t step = 0;
  CoreInputs inputs;
  int64_t bytes = 0;                  // The bytes received for this slice.
  absl::Duration arrived_at;          // Time by TrainingLoopOptions.clock.
  std::shared_ptr<const void> owner;  // Keeps the memory of `inputs`; released after the step.
};

// Waits for core `core`'s next step; nullopt at the end of the feed. The loop calls this for one
// core after the other. So a core's wait follows from `arrived_at`, and not from the duration of a
// call.
using PopInfeed = std::function<absl::StatusOr<std::optional<InfeedStep>>(int64_t core)>;

// Reported after every training step.
struct TrainingProgress {
  int64_t epoch = 0;  // Counted from 0.
  int64_t step = 0;   // Counted from 0 in the epoch: LoopState::step_in_epoch.
  int64_t steps_per_epoch = 0;
  double loss = 0;  // This step's.
  double accuracy = 0;
  double learning_rate = 0;
  // The run's time before this step. If the run was resumed, the breaks do not count.
  absl::Duration start;
  absl::Duration infeed_stall;  // Wait until the last core had its slice; 0 for the first step.
  absl::Duration compute;
};

struct TrainingLoopOptions {
  int64_t epochs = 1;
  // Training steps after which an epoch ends.
  int64_t steps_per_epoch = 1;
  // Opens one pass over the validation data; called after every epoch. Null: no validation.
  std::function<absl::StatusOr<PopInfeed>()> open_validation;
  // The time since some fixed moment. It never goes back.
  std::function<absl::Duration()> clock;
  // May be null.
  std::function<void(const TrainingProgress&)> on_step;

  // The state from which the run goes on. The default is the start of a run. REQUIRES: the
  // trainer's state was taken at the same moment, and the infeed goes on at
  // resume_from.step_in_epoch.
  LoopState resume_from;
  // Saves the loop's and the trainer's state. May be null. It is called after each epoch and its
  // validation, and after every `save_every` steps of the run. If save_every is 0, it is called
  // only after epochs.
  std::function<absl::Status(const LoopState&)> save;
  int64_t save_every = 0;
};

// Trains until `epochs` epochs have ended. Errors of an infeed and of `save` are passed on
// unchanged.
//
//   InvalidArgument     an option out of range, inputs that do not fit the model, or a feed that
//                       ends before the last epoch: its spec has too few epochs.
//   FailedPrecondition  cores are given different steps, or only some cores are given a step.
absl::StatusOr<TrainingReport> RunTraining(Trainer& trainer, const PopInfeed& pop,
                                           const TrainingLoopOptions& options);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_TRAINING_LOOP_H_
