// One layer of one shard: its forward and backward pass, in phases.
//
// Most layers have one phase in each pass. Batch norm must add up statistics over all shards
// between its phases. So after every phase but a layer's last, the network adds up the Partials()
// of all shards, or of each core's shards, and writes the sum back to the shards. network.h shows
// the order of the additions. Training uses T = float. Tests of gradients use double, which is
// never rounded to bf16.
//
// Single-thread: a shard's layers are called by one thread at a time. The arrays passed to a layer
// belong to the network and outlive the layer.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_LAYER_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_LAYER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "client/emulator/array/matrix_unit.h"
#include "client/emulator/model/model.h"

namespace systole::emulator {

// A layer's numbers: learned numbers (shared by the shards of a core), their gradients (the shard's
// own) and running statistics (the core's).
template <typename T>
struct LayerParameters {
  absl::Span<const T> weights, biases;
  absl::Span<T> weight_gradients, bias_gradients;
  absl::Span<T> statistics;
};

// The values that are the same for all layers of a shard in one step.
template <typename T>
struct StepContext {
  int64_t images = 0;
  const uint8_t* valid = nullptr;  // [images]; 0: the example does not count.
  int64_t valid_everywhere = 0;    // Valid examples of all shards.
  int64_t valid_on_core = 0;       // Valid examples of this core's shards.
  bool training = false;           // Evaluation uses running statistics and no dropout.
  uint64_t seed = 0;               // The run's seed.
  int64_t step = 0;                // The run's step.
  int64_t first_example = 0;       // The index in the global batch of the shard's first example.
  MatrixUnit<T>* matrix_unit = nullptr;
};

template <typename T>
class Layer {
 public:
  virtual ~Layer() = default;

  virtual int ForwardPhases(bool /*training*/) const { return 1; }
  // in: for each of the layer's inputs [images, input shape]; out: [images, output shape].
  virtual void Forward(int phase, const StepContext<T>& step, absl::Span<const T* const> in,
                       T* out) = 0;

  virtual int BackwardPhases() const { return 1; }
  // `in` as in Forward(). d_out is the loss's gradient with respect to `out`. Writes the gradient
  // with respect to `in` to d_in. If the layer takes only the model's input, d_in is null, and this
  // gradient is not written. Writes the parameters' gradients to weight_gradients and
  // bias_gradients. If a layer has several inputs, they all have the same gradient, and d_in holds
  // it once.
  virtual void Backward(int phase, const StepContext<T>& step, absl::Span<const T* const> in,
                        const T* d_out, T* d_in) = 0;

  // This shard's partial sums after the phase that has just run. They are added up over all shards
  // or, if sums_on_core_only(), over the shards of this core.
  virtual absl::Span<T> Partials() { return {}; }
  virtual bool sums_on_core_only() const { return false; }

  // Moves the running statistics towards this step's statistics. Called once per core and training
  // step. With sums_on_core_only(), this function is called only for cores with a valid example.
  // Then the network computes the mean of these cores' running statistics, and every core gets this
  // mean.
  virtual void UpdateStatistics() {}
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_LAYER_H_
