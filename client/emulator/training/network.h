// A model on all its cores. Every core holds a replica of the parameters and works on its slice of
// the global batch. Sums over cores run in one fixed tree, so results do not depend on the number
// of host threads.
//
//   core 0            core 1            ...      a replica each: parameters, optimizer, statistics
//    shard 0 shard 1   shard 2 shard 3           a slice each: layers, activations, gradients
//         \   /             \   /
//          +                 +                   tree over all shards, neighbours first:
//              \         /                       ((s0+s1)+(s2+s3))+((s4+s5)+(s6+s7))
//                   +                            a sum without a partner moves up alone
//
// A core usually has one shard. One core with eight shards computes the same bits as eight cores
// with one shard each. The exception is batch norm with local statistics, which sums only over the
// shards of one core. T is float or double. With float, matrix units use the chosen numerics.
// Doubles are never rounded to bf16.
// Thread-compatible. Uses `pool`'s threads inside its calls.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_NETWORK_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_NETWORK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "client/emulator/array/device_array.h"
#include "client/emulator/array/matrix_unit.h"
#include "client/emulator/array/numerics.h"
#include "client/emulator/model/model.h"
#include "client/emulator/training/gradient_plan.h"
#include "client/emulator/training/layer.h"
#include "client/emulator/training/softmax_cross_entropy.h"
#include "client/emulator/training/weight_update.h"
#include "core/concurrency/worker_pool.h"

namespace systole::emulator {

struct NetworkOptions {
  int64_t num_cores = 8;
  int64_t shards_per_core = 1;
  int64_t images_per_shard = 1;
  uint64_t seed = 0;
  Numerics numerics = Numerics::kExact;  // Of every shard's matrix unit.
};

template <typename T>
class Network {
 public:
  // Draws the initial weights. If `pool` is null, the calling thread does all work. REQUIRES:
  // options are positive, Bytes() bytes of memory are free, and the model has no
  // first_untrainable().
  Network(const Model& model, const NetworkOptions& options, WorkerPool* pool);

  // How many bytes of memory a network holds. Only memory that grows with the model's sizes is
  // counted. With numerics `fast`, oneDNN takes some memory that is not counted.
  static int64_t Bytes(const Model& model, const NetworkOptions& options);

  // One shard's part of the batch, to be filled before Forward(). input: [images, input shape].
  // Examples whose `valid` is 0 must hold finite numbers.
  struct Batch {
    DeviceArray<T> input;
    std::vector<int64_t> labels;
    std::vector<uint8_t> valid;
  };
  int64_t num_shards() const { return static_cast<int64_t>(shards_.size()); }
  Batch& batch(int64_t shard) { return shards_[shard].batch; }

  struct Result {
    T loss = 0;  // Mean over valid examples; 0 if there is none.
    int64_t correct = 0, valid = 0;
  };
  // Computes the loss of the batch. Training uses batch statistics and dropout, and prepares
  // Backward(). `step` is the step's number in the run, from 0. Dropout's draws depend on `step`.
  Result Forward(bool training, int64_t step = 0);
  // Computes every shard's gradients with respect to all parameters. REQUIRES: Forward(true) came
  // before and found valid examples.
  void Backward();
  // Sums the gradients, and moves every replica's parameters, optimizer state and running
  // statistics. `step` is as in Forward(). Adam's corrections depend on `step`.
  void Update(T rate, int64_t step = 0);

  // A hash of each core's parameters and statistics. The hashes are equal if the replicas are
  // equal.
  std::vector<uint64_t> HashReplicas();

  absl::Span<T> parameters(int64_t core) { return cores_[core].parameters.span(); }
  absl::Span<T> statistics(int64_t core) { return cores_[core].statistics.span(); }
  // The optimizer's numbers per parameter: two arrays for Adam, one for other optimizers. See
  // WeightUpdate.
  absl::Span<DeviceArray<T>> optimizer_state(int64_t core) {
    return absl::MakeSpan(cores_[core].optimizer_state);
  }

  // Runs body(0) .. body(n - 1) on the pool, each in a FlushScope (subnormals become zero).
  void Parallel(int64_t n, absl::FunctionRef<void(int64_t)> body);

 private:
  friend class TrainingPeer;  // For tests.

  struct Core {
    DeviceArray<T> parameters, statistics;
    std::vector<DeviceArray<T>> optimizer_state;
    int64_t valid = 0;  // The core's valid examples in the batch.
  };
  struct Shard {
    Batch batch;
    std::vector<std::unique_ptr<Layer<T>>> layers;
    std::vector<DeviceArray<T>> outputs;    // Per layer.
    std::vector<DeviceArray<T>> d_outputs;  // The gradient plan's slots.
    DeviceArray<T> gradients;               // Laid out like the parameters.
    MatrixUnit<T> matrix_unit;
    LossSums<T> loss;
  };
  // One phase of one layer. After each phase but the layer's last, the partial sums of the shards
  // are added up.
  struct Phase {
    size_t layer;
    int phase;
    bool is_last;
  };

  void InitialiseWeights(Core& core) const;
  // Runs the phases on all shards. A shard runs several phases in a row, up to a phase after which
  // partial sums are added up: over all shards or, if sums_on_core_only(), over the shards of each
  // core.
  void Run(absl::Span<const Phase> phases,
           absl::FunctionRef<void(int64_t shard, const Phase&)> run);
  // Adds up the layer's partial sums over all shards, or over the shards of each core, and gives
  // the sums to the shards.
  void SumPartials(size_t layer);
  void SumPartials(size_t layer, int64_t first_shard, int64_t shards);
  void UpdateStatistics();
  // On every core, sets a layer's statistics to the mean over the cores that had a valid example.
  void AverageStatistics(const LayerPlan& layer);
  StepContext<T> ContextOf(int64_t shard);
  std::vector<const T*> InputsOf(const Shard& shard, size_t layer) const;
  void RunBackward(int64_t shard, const Phase& phase);
  void SumGradientPiece(int64_t begin, int64_t end);

  const Model model_;
  const NetworkOptions options_;
  WorkerPool* const pool_;
  std::vector<Core> cores_;
  std::vector<Shard> shards_;
  const GradientPlan gradient_plan_;
  WeightUpdate<T> weight_update_;
  int64_t valid_everywhere_ = 0;
  int64_t step_ = 0;
  bool training_ = false;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_NETWORK_H_
