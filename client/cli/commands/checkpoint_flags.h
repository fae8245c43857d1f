// The options that save and continue a training run: --initial-checkpoint, --checkpoint,
// --checkpoint-every, --resume. Reads and writes the files that these options name.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_CHECKPOINT_FLAGS_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_CHECKPOINT_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/console/command_line.h"
#include "client/emulator/training/checkpoint.h"
#include "client/emulator/training/loop_state.h"
#include "client/emulator/training/trainer.h"
#include "client/step/feed.h"
#include "core/order/resume_token.h"

namespace systole {

// The size of a feed's epochs.
emulator::EpochSize EpochSizeOf(const Feed& feed);

// The steps that are left of `epochs` epochs. REQUIRES: fewer than `epochs` epochs have ended
// (state.epochs).
int64_t StepsLeft(int64_t epochs, const emulator::LoopState& state, int64_t steps_per_epoch);

// The run that --resume continues.
struct ResumedRun {
  emulator::Checkpoint checkpoint;
  ResumeToken token;  // Where the training feed goes on.
  std::string file;   // The checkpoint's name, for messages.

  // InvalidArgument if the run has finished `epochs` epochs.
  absl::Status CheckEpochs(int64_t epochs) const;
  // The state in which the training loop begins to take steps from `feed`. `feed` was resumed from
  // `token`, and has given no step yet. If the global batch of `feed` is not the saved run's, the
  // state's `step_in_epoch` may differ from the checkpoint's.
  //   FailedPrecondition  the global batch is the same, but an epoch of `feed` has another number
  //                       of steps than an epoch of the saved run.
  //   DataLoss            the checkpoint's token and its loop are not at the same step.
  absl::StatusOr<emulator::LoopState> LoopIn(const Feed& feed) const;
  // A note for the report of a run that goes on with another global batch. Empty if the global
  // batch is the same.
  std::string BatchNote(int64_t global_batch) const;
  // emulator::RestoreTrainer(), with the file's name in front of its errors.
  absl::Status Restore(emulator::Trainer& trainer) const;
  // `status` with the file's name in front.
  absl::Status Annotate(const absl::Status& status) const;
};

class CheckpointFlags {
 public:
  void Declare(OptionList& options);

  // Reads the checkpoint that --resume names. Nullopt if --resume is not given.
  //   InvalidArgument    --checkpoint-every without --checkpoint or less than 0,
  //                      --initial-checkpoint with --resume, or a file that is no checkpoint.
  //   ResourceExhausted  a file larger than any trainer's memory.
  //   DataLoss           a damaged file.
  // Also the error of opening the file of --resume. As a trial, creates each file that the run will
  // write, and returns the error if this fails. Otherwise the run would fail after an epoch. Errors
  // of files name the file.
  absl::StatusOr<std::optional<ResumedRun>> Load() const;

  bool saves() const { return !file_.empty(); }
  // Whether the run's state before step 0 is to be saved, by SaveInitial().
  bool saves_initial() const { return !initial_.empty(); }
  int64_t every() const { return every_; }
  // Replaces the file that --checkpoint names, as a whole or not at all. The file is on the storage
  // device when this function returns. `version` is the program's. REQUIRES: saves().
  absl::Status Save(const emulator::Checkpoint& checkpoint, absl::string_view version) const;
  // Like Save(), for the file of --initial-checkpoint. REQUIRES: saves_initial().
  absl::Status SaveInitial(const emulator::Checkpoint& checkpoint, absl::string_view version) const;
  // The Cancelled error of a run that was stopped after `steps` steps in all, including the steps
  // before --resume. The message says which checkpoint continues the run, or how to get one.
  // `saved_steps`: the number of steps in the last checkpoint that Save() wrote in this run, if
  // any.
  absl::Status Interrupted(int64_t steps, const std::optional<int64_t>& saved_steps,
                           const std::optional<ResumedRun>& resumed) const;

 private:
  std::string initial_;
  std::string file_;
  int64_t every_ = 0;
  std::string resume_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_CHECKPOINT_FLAGS_H_
