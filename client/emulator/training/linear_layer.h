// conv2d and dense, the layers that multiply matrices. A dense layer is a 1 x 1 convolution of a
// 1 x 1 image.
//
//   forward          out[places, filters]    = patches(x) * w
//   input gradient   d_x[places, channels]   = patches(d_out, spread and padded) * w turned round
//   weight gradient  d_w'[filters, patch]    = d_out' * patches(x)
//
// All three use the matrix unit. x and d_out are rounded to operands once. The rounded images have
// a rim of zeros, and patches are gathered from these images. With a stride > 1, d_out is spread:
// there are zeros between its values. Spreading is simple and exact, but the input gradient takes
// stride^2 times the multiply-accumulates. Single-thread.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_LINEAR_LAYER_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_LINEAR_LAYER_H_

#include <cstdint>

#include "client/emulator/array/device_array.h"
#include "client/emulator/array/matrix_unit.h"
#include "client/emulator/array/scratch_plan.h"
#include "client/emulator/model/model.h"
#include "client/emulator/training/layer.h"

namespace systole::emulator {

template <typename T>
class LinearLayer : public Layer<T> {
 public:
  LinearLayer(const LayerPlan& plan, int64_t images, bool needs_d_in,
              const LayerParameters<T>& parameters);

  static int64_t Bytes(const LayerPlan& plan, int64_t images, bool needs_d_in);
  // Adds the layer's products to the plan of the shard's scratch memory.
  static void PlanScratch(const LayerPlan& plan, bool needs_d_in, ScratchPlan& scratch);

  void Forward(int phase, const StepContext<T>& step, absl::Span<const T* const> in,
               T* out) override;
  void Backward(int phase, const StepContext<T>& step, absl::Span<const T* const> in,
                const T* d_out, T* d_in) override;

 private:
  // The size of images of operands with a rim: [images, height, width, channels].
  struct Geometry {
    int64_t height, width, channels;
    int64_t row() const { return width * channels; }
    int64_t image() const { return height * width * channels; }
  };
  static Geometry InputGeometry(const LayerPlan& plan);
  static Geometry GradientGeometry(const LayerPlan& plan, bool needs_d_in);

  PatchMatrix<Operand<T>> InputPatches(int64_t images) const;
  void RoundInput(int64_t images, const T* in);
  void RoundGradient(int64_t images, const T* d_out);
  void MultiplyWeightGradient(const StepContext<T>& step);
  void MultiplyInputGradient(const StepContext<T>& step, T* d_in);

  const LayerPlan plan_;
  const LayerParameters<T> parameters_;
  const Geometry in_, gradient_;
  // The layout of d_out in rounded_gradient_: `rim_` zeros before the first place, and places
  // `spread_` apart.
  const int64_t rim_, spread_;
  DeviceArray<Operand<T>> rounded_in_, rounded_gradient_;
  DeviceArray<Operand<T>> rounded_weights_, turned_weights_;
  DeviceArray<T> weight_gradient_;  // [filters, patch].
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_LINEAR_LAYER_H_
