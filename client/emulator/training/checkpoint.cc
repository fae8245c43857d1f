#include "client/emulator/training/checkpoint.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

absl::Status Differs(absl::string_view what, absl::string_view saved, absl::string_view given,
                     absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat("the checkpoint was saved with ", what, " ", saved,
                                                 ", this run has ", given, "; ", remedy));
}

}  // namespace

Checkpoint TakeCheckpoint(Trainer& trainer, const LoopState& loop, int64_t steps_per_epoch,
                          const std::string& feed_token) {
  const TrainerOptions& options = trainer.options();
  return {.model = trainer.model().name,
          .model_fingerprint = trainer.model().fingerprint,
          .seed = options.seed,
          .numerics = options.numerics,
          .global_batch = options.num_cores * options.per_core_batch,
          .steps_per_epoch = steps_per_epoch,
          .feed_token = feed_token,
          .trainer = trainer.State(),
          .loop = loop};
}

absl::Status CheckGlobalBatch(const Checkpoint& checkpoint, int64_t global_batch) {
  if (checkpoint.global_batch == global_batch) return absl::OkStatus();
  return Differs("global batch", absl::StrCat(checkpoint.global_batch), absl::StrCat(global_batch),
                 "set the spec's global_batch back");
}

absl::Status RestoreTrainer(const Checkpoint& checkpoint, Trainer& trainer) {
  const TrainerOptions& options = trainer.options();
  if (checkpoint.model_fingerprint != trainer.model().fingerprint) {
    return Differs("model", absl::StrCat("'", absl::CEscape(checkpoint.model), "'"),
                   absl::StrCat("'", trainer.model().name, "', whose text is not the same"),
                   "give the model as it was, or start anew");
  }
  if (checkpoint.seed != options.seed) {
    return Differs("seed", absl::StrCat(checkpoint.seed), absl::StrCat(options.seed),
                   absl::StrCat("give --seed ", checkpoint.seed));
  }
  if (checkpoint.numerics != options.numerics) {
    return Differs("numerics", NumericsName(checkpoint.numerics), NumericsName(options.numerics),
                   absl::StrCat("give --numerics ", NumericsName(checkpoint.numerics)));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckGlobalBatch(checkpoint, options.num_cores * options.per_core_batch));
  return trainer.Restore(checkpoint.trainer);
}

}  // namespace systole::emulator
