// Batch norm over the whole global batch, or over this core's part of it: y = (x - mean) /
// sqrt(variance + epsilon) * scale + shift.
//
//   forward phases    sums of x | sums of (x - mean)^2 | y
//   backward phases   sums of dy and of dy * normal(x) | dx
//
// To avoid cancellation, the variance is summed in a second pass and not computed from sums of x^2.
// Only valid examples are in the sums. In training, the values and gradients of examples that are
// not valid are set to zeros. Otherwise these values could grow without bound, layer after layer,
// because the statistics do not cover them. For example, a layer multiplies by 1 / sqrt(epsilon) if
// the variance is 0. The product of an infinite value and a gradient of 0 would be NaN. A shard
// adds up its images in order (see VectorUnit::sum_rows). Then the sums of all shards are added in
// the fixed tree of network.h. With local statistics, only the sums of the core's shards are added.
// Single-thread.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_BATCH_NORM_LAYER_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_BATCH_NORM_LAYER_H_

#include <vector>

#include "client/emulator/array/vector_unit.h"
#include "client/emulator/training/layer.h"

namespace systole::emulator {

template <typename T>
class BatchNormLayer : public Layer<T> {
 public:
  BatchNormLayer(const LayerPlan& plan, const LayerParameters<T>& parameters);

  int ForwardPhases(bool training) const override { return training ? 3 : 1; }
  void Forward(int phase, const StepContext<T>& step, absl::Span<const T* const> in,
               T* out) override;
  int BackwardPhases() const override { return 2; }
  void Backward(int phase, const StepContext<T>& step, absl::Span<const T* const> in,
                const T* d_out, T* d_in) override;
  absl::Span<T> Partials() override { return absl::MakeSpan(partials_); }
  bool sums_on_core_only() const override { return plan_.local_statistics; }
  void UpdateStatistics() override;

 private:
  // How many values of each channel the statistics cover.
  T Count(const StepContext<T>& step) const;
  void Apply(const StepContext<T>& step, const T* in, absl::Span<const T> mean,
             absl::Span<const T> variance, T* out);
  // Sets the examples that are not valid to zeros.
  void ClearInvalid(const StepContext<T>& step, T* out) const;
  // 1 / sqrt(variance + epsilon).
  std::vector<T> Inverse(absl::Span<const T> variance) const;

  const LayerPlan plan_;
  const LayerParameters<T> parameters_;
  const int64_t channels_, places_;  // places_: height * width.
  std::vector<T> partials_;
  std::vector<T> mean_, variance_;  // Of the current step.
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_BATCH_NORM_LAYER_H_
