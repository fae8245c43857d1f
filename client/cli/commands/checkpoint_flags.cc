#include "client/cli/commands/checkpoint_flags.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/emulator/training/checkpoint_file.h"
#include "client/emulator/training/trainer.h"
#include "core/status/status_macros.h"
#include "core/storage/local/file_sink.h"
#include "core/storage/local/file_source.h"

namespace systole {
namespace {

// A trainer refuses a model that needs more memory than this, so no checkpoint is larger.
constexpr int64_t kMaxFileBytes = emulator::TrainerOptions().memory_limit_bytes;

absl::Status In(const std::string& file, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("--resume ", file, ": ", status.message()));
}

absl::StatusOr<emulator::Checkpoint> ReadFile(const std::string& path) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<FileSource> source, FileSource::Open(path));
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t size, source->Size());
  if (size > kMaxFileBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        path, " has ", size, " bytes, more than a checkpoint may have (", kMaxFileBytes, ")"));
  }
  absl::StatusOr<emulator::Checkpoint> checkpoint = emulator::ReadCheckpoint(*source);
  if (!checkpoint.ok()) return In(path, checkpoint.status());
  return checkpoint;
}

absl::Status WriteFile(const std::string& path, const emulator::Checkpoint& checkpoint,
                       absl::string_view version) {
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<FileSink> sink, FileSink::Create(path));
  return emulator::WriteCheckpoint(checkpoint, version, std::move(sink));
}

}  // namespace

emulator::EpochSize EpochSizeOf(const Feed& feed) {
  return {.global_batch = feed.order().spec().global_batch,
          .steps_per_epoch = feed.steps_per_epoch()};
}

int64_t StepsLeft(int64_t epochs, const emulator::LoopState& state, int64_t steps_per_epoch) {
  const int64_t left = epochs - static_cast<int64_t>(state.epochs.size());
  const int64_t most = std::numeric_limits<int64_t>::max() / steps_per_epoch;
  return std::min(left, most) * steps_per_epoch - state.step_in_epoch;
}

absl::Status ResumedRun::CheckEpochs(int64_t epochs) const {
  const size_t ended = checkpoint.loop.epochs.size();
  if (epochs > static_cast<int64_t>(ended)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file, " has finished ", ended, " epochs, so --epochs ", epochs,
                   " leaves none to train; give --epochs ", ended + 1, " or more"));
}

absl::StatusOr<emulator::LoopState> ResumedRun::LoopIn(const Feed& feed) const {
  const emulator::EpochSize size = EpochSizeOf(feed);
  if (size.global_batch == checkpoint.global_batch &&
      size.steps_per_epoch != checkpoint.steps_per_epoch) {
    return Annotate(absl::FailedPreconditionError(
        absl::StrCat("an epoch of the saved run has ", checkpoint.steps_per_epoch,
                     " steps, an epoch of this feed ", size.steps_per_epoch)));
  }
  emulator::LoopState loop = checkpoint.loop;
  loop.step_in_epoch = emulator::StepInEpoch(checkpoint, size);
  // With another global batch, the epochs of a mixture begin at other steps than in the saved run.
  if (feed.order().spec().mixture != nullptr) return loop;
  const auto ended = static_cast<int64_t>(loop.epochs.size());
  const int64_t in_epoch = feed.next_step() - loop.step_in_epoch;
  if (in_epoch % size.steps_per_epoch == 0 && in_epoch / size.steps_per_epoch == ended) return loop;
  return Annotate(absl::DataLossError(
      "the checkpoint is inconsistent: the feed's token in it is not for the trainer's step"));
}

std::string ResumedRun::BatchNote(int64_t global_batch) const {
  if (global_batch == checkpoint.global_batch) return "";
  return absl::StrCat("after step ", checkpoint.trainer.steps,
                      " the run went on with global_batch ", global_batch, " in place of ",
                      checkpoint.global_batch,
                      "; its learning rate still follows the number of steps");
}

absl::Status ResumedRun::Restore(emulator::Trainer& trainer) const {
  return Annotate(emulator::RestoreTrainer(checkpoint, trainer));
}

absl::Status ResumedRun::Annotate(const absl::Status& status) const { return In(file, status); }

void CheckpointFlags::Declare(OptionList& options) {
  options.Optional("--initial-checkpoint", "FILE", &initial_,
                   "Save the initial weights here before step 0, as a checkpoint to resume from");
  options.Optional("--checkpoint", "FILE", &file_,
                   "Save the run here after every epoch; --resume goes on from it");
  options.Optional("--checkpoint-every", "STEPS", &every_,
                   "With --checkpoint: also save the run after every STEPS steps");
  options.Optional(
      "--resume", "FILE", &resume_,
      "Go on from this checkpoint. With the same global_batch, every bit is as in a run "
      "without a break");
}

absl::StatusOr<std::optional<ResumedRun>> CheckpointFlags::Load() const {
  if (every_ < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--checkpoint-every ", every_, ": want 1 or more, or 0 for epochs only"));
  }
  if (every_ > 0 && file_.empty()) {
    return absl::InvalidArgumentError("--checkpoint-every needs a --checkpoint FILE to write");
  }
  if (!initial_.empty() && !resume_.empty()) {
    return absl::InvalidArgumentError(
        "--initial-checkpoint saves the weights before step 0, and a run with --resume begins "
        "later; leave one of the two out");
  }
  for (const std::string& written : {initial_, file_}) {
    if (!written.empty()) SYSTOLE_RETURN_IF_ERROR(CheckWritable(written));
  }
  if (resume_.empty()) return std::optional<ResumedRun>();
  SYSTOLE_ASSIGN_OR_RETURN(emulator::Checkpoint checkpoint, ReadFile(resume_));
  const absl::StatusOr<ResumeToken> token = ResumeToken::Decode(checkpoint.feed_token);
  if (!token.ok()) {
    return In(resume_, absl::DataLossError(absl::StrCat("the feed's token cannot be used: ",
                                                        token.status().message())));
  }
  return ResumedRun{.checkpoint = std::move(checkpoint), .token = *token, .file = resume_};
}

absl::Status CheckpointFlags::Save(const emulator::Checkpoint& checkpoint,
                                   absl::string_view version) const {
  return WriteFile(file_, checkpoint, version);
}

absl::Status CheckpointFlags::SaveInitial(const emulator::Checkpoint& checkpoint,
                                          absl::string_view version) const {
  return WriteFile(initial_, checkpoint, version);
}

absl::Status CheckpointFlags::Interrupted(int64_t steps, const std::optional<int64_t>& saved_steps,
                                          const std::optional<ResumedRun>& resumed) const {
  const std::string after = absl::StrCat("interrupted after ", steps, " steps: ");
  const auto goes_on = [](const std::string& file, int64_t step) {
    return absl::StrCat("--resume ", file, " goes on after step ", step);
  };
  if (saved_steps.has_value()) {
    return absl::CancelledError(absl::StrCat(after, goes_on(file_, *saved_steps)));
  }
  const std::string old =
      resumed.has_value()
          ? absl::StrCat(", ", goes_on(resumed->file, resumed->checkpoint.trainer.steps),
                         " as before")
          : "";
  return absl::CancelledError(
      absl::StrCat(after, "no checkpoint was written", old,
                   file_.empty() ? "; --checkpoint FILE" : "; --checkpoint",
                   " saves the run after every epoch, --checkpoint-every STEPS more often"));
}

}  // namespace systole
