// relu, max_pool and average_pool, three layers without parameters.
//
// A max pool remembers the place of each largest value (the first of equals) and sends the gradient
// there. Places in the padding are left out. They have no value and do not count in an average.
// Single-thread.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_POOL_LAYER_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_POOL_LAYER_H_

#include <cstdint>

#include "client/emulator/array/device_array.h"
#include "client/emulator/training/layer.h"

namespace systole::emulator {

template <typename T>
class ReluLayer : public Layer<T> {
 public:
  explicit ReluLayer(const LayerPlan& plan) : size_(plan.input.size()) {}
  void Forward(int phase, const StepContext<T>& step, absl::Span<const T* const> in,
               T* out) override;
  void Backward(int phase, const StepContext<T>& step, absl::Span<const T* const> in,
                const T* d_out, T* d_in) override;

 private:
  const int64_t size_;
};

template <typename T>
class PoolLayer : public Layer<T> {
 public:
  PoolLayer(const LayerPlan& plan, int64_t images);

  static int64_t Bytes(const LayerPlan& plan, int64_t images) {
    return (Places(plan, images) + kArraySlack) * static_cast<int64_t>(sizeof(int32_t));
  }

  void Forward(int phase, const StepContext<T>& step, absl::Span<const T* const> in,
               T* out) override;
  void Backward(int phase, const StepContext<T>& step, absl::Span<const T* const> in,
                const T* d_out, T* d_in) override;

 private:
  // The number of places that the layer remembers.
  static int64_t Places(const LayerPlan& plan, int64_t images) {
    return plan.kind == LayerKind::kMaxPool ? images * plan.output.size() : 0;
  }

  // For each window, goes over those of its places that are inside the image. Windows and places
  // come in order. Calls visit(output offset, input offset, index of the place, number of the
  // window's places inside the image).
  template <typename Visit>
  void ForEachPlace(int64_t images, const Visit& visit) const;

  const LayerPlan plan_;
  DeviceArray<int32_t> place_;  // For each output value, if this is a kMaxPool.
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_POOL_LAYER_H_
