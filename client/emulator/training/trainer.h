// Trains a model on emulated cores, one global batch at a time. It has no clock and no files, and
// no threads besides the worker pool. The next weights depend only on model, options and the
// batches so far, to the last bit. With Numerics::kExact this holds for any number of host threads
// and on any CPU.
//
// Single-thread.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_TRAINER_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_TRAINER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/emulator/array/numerics.h"
#include "client/emulator/model/model.h"
#include "client/emulator/training/network.h"
#include "client/emulator/training/trainer_state.h"
#include "core/concurrency/worker_pool.h"
#include "core/tensor/tensor.h"

namespace systole::emulator {

struct TrainerOptions {
  // Emulated cores, each with a replica of the model. Memory grows with their number.
  int64_t num_cores = 8;
  // Examples per core and step.
  int64_t per_core_batch = 1;
  // Each core's slice is cut into this many equal parts. In all sums, each part counts as if it had
  // a core of its own: 1 core with 8 shards computes what 8 cores compute.
  int64_t shards_per_core = 1;
  // Host threads, the calling one included. Their number changes the speed, but no bit of the
  // results.
  int threads = 1;
  // The seed of the initial weights and of dropout.
  uint64_t seed = 0;
  // How products are summed. kExact promises equal bits for any number of threads, any CPU and any
  // split over cores. kFast stays within its tolerance (array/numerics.h). On one machine, with the
  // same options, kFast gives the same bits again.
  Numerics numerics = Numerics::kExact;
  // A model that needs more memory is refused.
  int64_t memory_limit_bytes = int64_t{8} << 30;
};

// One core's slice of one step. The tensors are dense and row-major, and are read only during the
// call.
struct CoreInputs {
  // [per_core_batch, height, width, channels], or another shape with the same number of elements
  // and the same first dimension. The tensor's type is one of kInputDTypes; uint8 counts as 0 ..
  // 255. The values are multiplied by the model's input_scale.
  TensorView image;
  // [per_core_batch] int64 in [0, classes) where valid.
  TensorView label;
  // [per_core_batch] uint8. 0: the example does not count, and its bytes may be anything.
  TensorView valid;
};

struct StepResult {
  double loss = 0;  // Mean over the valid examples (computed as a float); 0 if there is none.
  int64_t correct = 0;
  int64_t valid = 0;
};

class Trainer {
 public:
  //   InvalidArgument    an option is out of range, or a layer cannot be computed (see
  //                      Model::first_untrainable). The message names the option or the layer.
  //   ResourceExhausted  the model needs more than memory_limit_bytes.
  static absl::StatusOr<Trainer> Create(const Model& model, const TrainerOptions& options);

  // One training step. A batch without a valid example changes nothing but the step count.
  //   InvalidArgument  the number of cores, a tensor's dtype or shape, or a label does not fit. The
  //                    message names core, tensor and, for a label, the slot. Nothing has changed.
  //   Internal         replicas differ after the step.
  absl::StatusOr<StepResult> Step(absl::Span<const CoreInputs> cores);

  // Computes loss and accuracy with the running statistics, and changes nothing. The
  // InvalidArgument errors are those of Step().
  absl::StatusOr<StepResult> Evaluate(absl::Span<const CoreInputs> cores);

  TrainerState State();
  // Sets every core to `state`. If `state` belongs to another model, changes nothing and returns
  // InvalidArgument, which names a tensor.
  absl::Status Restore(const TrainerState& state);

  // The number of steps taken.
  int64_t steps() const { return steps_; }
  const Model& model() const { return model_; }
  const TrainerOptions& options() const { return options_; }
  // A hash of the parameters and running statistics. Equal runs have equal hashes.
  uint64_t WeightsHash();

 private:
  friend class TrainingPeer;  // For tests.

  Trainer(const Model& model, const TrainerOptions& options);
  absl::Status CheckInputs(absl::Span<const CoreInputs> cores) const;
  void LoadInputs(absl::Span<const CoreInputs> cores);
  // The values of the tensor on core `core`.
  absl::Span<float> ValuesAt(const TensorPlace& place, int64_t core);

  Model model_;
  TrainerOptions options_;
  int64_t steps_ = 0;
  std::unique_ptr<WorkerPool> pool_;  // Null: the calling thread does all work.
  std::unique_ptr<Network<float>> network_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_TRAINER_H_
