// A training run at rest, as a value: all that its next step depends on beside model text, options
// and feed, and what its report has so far. A run that is saved, ended and resumed goes on with the
// bits that it would have had without the break. checkpoint_file.h has its bytes.
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
  // The run it belongs to.
  std::string model;  // Its name, for messages; the fingerprint tells.
  uint64_t model_fingerprint = 0;
  uint64_t seed = 0;
  Numerics numerics = Numerics::kExact;
  int64_t global_batch = 0;
  int64_t steps_per_epoch = 0;
  std::string feed_token;  // Where the feed goes on; opaque here.
  // Where it stands.
  TrainerState trainer;
  LoopState loop;
};

// `trainer` between two steps, with what stands outside of it.
Checkpoint TakeCheckpoint(Trainer& trainer, const LoopState& loop, int64_t steps_per_epoch,
                          const std::string& feed_token);

// Puts the checkpoint's numbers into `trainer`. Another number of cores is fine as long as the
// global batch is the same: sums are then grouped otherwise, unless cores times shards_per_core is
// what it was.
//   InvalidArgument  model, seed, numerics or global batch are not the checkpoint's; says what to
//                    do. Nothing has changed.
absl::Status RestoreTrainer(const Checkpoint& checkpoint, Trainer& trainer);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_CHECKPOINT_H_
