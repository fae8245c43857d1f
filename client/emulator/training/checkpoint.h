// A saved training run, as a value. It has the run's report so far, and everything that the next
// step depends on, except the model text, the options and the feed. A run that is saved, ended and
// resumed computes the same bits as a run without the break. checkpoint_file.h describes the file.
//
// Thread-compatible value type; functions without state.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_CHECKPOINT_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/emulator/array/numerics.h"
#include "client/emulator/training/loop_state.h"
#include "client/emulator/training/trainer.h"
#include "client/emulator/training/trainer_state.h"

namespace systole::emulator {

struct Checkpoint {
  // The run that the checkpoint belongs to.
  std::string model;  // The name, for messages. Only the fingerprint is compared.
  uint64_t model_fingerprint = 0;
  uint64_t seed = 0;
  Numerics numerics = Numerics::kExact;
  // The feed's examples per step, and its steps per epoch. A run that resumes may have other
  // numbers.
  int64_t global_batch = 0;
  int64_t steps_per_epoch = 0;
  std::string feed_token;  // The feed's resume token, opaque here.
  // The run's state when the checkpoint was taken.
  TrainerState trainer;
  LoopState loop;
};

// The epochs of a training feed.
struct EpochSize {
  int64_t global_batch = 0;
  int64_t steps_per_epoch = 0;
};

// Takes a checkpoint of `trainer` between two steps. The other arguments are stored in the
// checkpoint.
Checkpoint TakeCheckpoint(Trainer& trainer, const LoopState& loop, const EpochSize& size,
                          const std::string& feed_token);

// The step of the current epoch at which a resumed run continues: the first step of which the run
// had used no example before the checkpoint. Returns size.steps_per_epoch if the epoch has no such
// step.
// `size` describes the epochs of the resumed run.
int64_t StepInEpoch(const Checkpoint& checkpoint, const EpochSize& size);

// Puts the checkpoint's numbers into `trainer`. The number of cores and the batch may differ from
// the checkpoint's. With another number of cores, sums are grouped as before only if cores times
// shards_per_core is unchanged.
//   InvalidArgument  model, seed or numerics differ from the checkpoint's. The message says what to
//                    do. `trainer` has not changed.
absl::Status RestoreTrainer(const Checkpoint& checkpoint, Trainer& trainer);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_CHECKPOINT_H_
