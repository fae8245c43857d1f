// add: the sum of two or more inputs of one shape, ((in[0] + in[1]) + in[2]) + .. The gradient with
// respect to each input is the gradient with respect to the sum.
// Single-thread.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_ADD_LAYER_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_ADD_LAYER_H_

#include <cstdint>

#include "client/emulator/training/layer.h"

namespace systole::emulator {

template <typename T>
class AddLayer : public Layer<T> {
 public:
  explicit AddLayer(const LayerPlan& plan) : size_(plan.output.size()) {}
  void Forward(int phase, const StepContext<T>& step, absl::Span<const T* const> in,
               T* out) override;
  void Backward(int phase, const StepContext<T>& step, absl::Span<const T* const> in,
                const T* d_out, T* d_in) override;

 private:
  const int64_t size_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_ADD_LAYER_H_
