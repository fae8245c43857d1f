#include "client/emulator/training/checkpoint.h"

#include <algorithm>
#include <cstdint>

#include "absl/numeric/int128.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace systole::emulator {
namespace {

absl::Status Differs(absl::string_view what, absl::string_view saved, absl::string_view given,
                     absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat("the checkpoint was saved with ", what, " ", saved,
                                                 ", this run has ", given, "; ", remedy));
}

}  // namespace

Checkpoint TakeCheckpoint(Trainer& trainer, const LoopState& loop, const EpochSize& size,
                          const std::string& feed_token) {
  const TrainerOptions& options = trainer.options();
  return {.model = trainer.model().name,
          .model_fingerprint = trainer.model().fingerprint,
          .seed = options.seed,
          .numerics = options.numerics,
          .global_batch = size.global_batch,
          .steps_per_epoch = size.steps_per_epoch,
          .feed_token = feed_token,
          .trainer = trainer.State(),
          .loop = loop};
}

int64_t StepInEpoch(const Checkpoint& checkpoint, const EpochSize& size) {
  const int64_t step = checkpoint.loop.step_in_epoch;
  if (step >= checkpoint.steps_per_epoch) return size.steps_per_epoch;  // Only validation is left.
  if (checkpoint.global_batch == size.global_batch) return std::min(step, size.steps_per_epoch);
  const absl::uint128 examples =
      absl::uint128(static_cast<uint64_t>(step)) * static_cast<uint64_t>(checkpoint.global_batch);
  const auto batch = static_cast<uint64_t>(size.global_batch);
  const absl::uint128 rounded_up = examples / batch + (examples % batch == 0 ? 0 : 1);
  const auto most = static_cast<uint64_t>(size.steps_per_epoch);
  return static_cast<int64_t>(absl::Uint128Low64(std::min<absl::uint128>(rounded_up, most)));
}

absl::Status RestoreTrainer(const Checkpoint& checkpoint, Trainer& trainer) {
  const TrainerOptions& options = trainer.options();
  if (checkpoint.model_fingerprint != trainer.model().fingerprint) {
    return Differs("model", absl::StrCat("'", absl::CEscape(checkpoint.model), "'"),
                   absl::StrCat("'", trainer.model().name, "', whose file has other text"),
                   "give the model file that the checkpoint was saved with, or start anew");
  }
  if (checkpoint.seed != options.seed) {
    return Differs("seed", absl::StrCat(checkpoint.seed), absl::StrCat(options.seed),
                   absl::StrCat("give --seed ", checkpoint.seed));
  }
  if (checkpoint.numerics != options.numerics) {
    return Differs("numerics", NumericsName(checkpoint.numerics), NumericsName(options.numerics),
                   absl::StrCat("give --numerics ", NumericsName(checkpoint.numerics)));
  }
  return trainer.Restore(checkpoint.trainer);
}

}  // namespace systole::emulator
