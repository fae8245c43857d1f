// dropout with inverted scaling: a value becomes +0 with probability `rate`, and is multiplied by 1
// / (1 - rate) otherwise. The expectation of the value stays the same, so evaluation does not
// change values.
//
// Which values are dropped depends only on (seed, step, layer, place in global batch, element):
//   d       = Philox(key = seed, counter = step:u64le layer 1)
//   block n = Philox(key = d[0] d[1], counter = n place d[2] d[3])   for elements 4 n .. 4 n + 3
// Each element has one word of its block. The element is dropped if the word's upper 24 bits, as a
// number in [0, 1), are below the rate. So the split of the batch over shards, cores and threads
// changes no bit, no mask is kept between the passes, and a resumed run makes the same draws.
// Single-thread.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_DROPOUT_LAYER_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_DROPOUT_LAYER_H_

#include "client/emulator/training/layer.h"

namespace systole::emulator {

template <typename T>
class DropoutLayer : public Layer<T> {
 public:
  explicit DropoutLayer(const LayerPlan& plan) : plan_(plan) {}
  void Forward(int phase, const StepContext<T>& step, absl::Span<const T* const> in,
               T* out) override;
  void Backward(int phase, const StepContext<T>& step, absl::Span<const T* const> in,
                const T* d_out, T* d_in) override;

 private:
  // Drops or scales values, in the same way in both passes.
  void Drop(const StepContext<T>& step, const T* from, T* to) const;

  const LayerPlan plan_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_DROPOUT_LAYER_H_
