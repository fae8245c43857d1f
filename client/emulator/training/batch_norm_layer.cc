#include "client/emulator/training/batch_norm_layer.h"

#include <algorithm>
#include <cmath>

namespace systole::emulator {

template <typename T>
BatchNormLayer<T>::BatchNormLayer(const LayerPlan& plan, const LayerParameters<T>& parameters)
    : plan_(plan),
      parameters_(parameters),
      channels_(plan.input.channels),
      places_(plan.input.height * plan.input.width),
      mean_(static_cast<size_t>(channels_)),
      variance_(static_cast<size_t>(channels_)) {}

template <typename T>
T BatchNormLayer<T>::Count(const StepContext<T>& step) const {
  const int64_t valid = plan_.local_statistics ? step.valid_on_core : step.valid_everywhere;
  // At least 1: for a core without examples the sums are 0, and 0 / 0 would be NaN.
  return static_cast<T>(std::max<int64_t>(1, valid * places_));
}

template <typename T>
std::vector<T> BatchNormLayer<T>::Inverse(absl::Span<const T> variance) const {
  std::vector<T> inverse;
  for (const T v : variance) {
    inverse.push_back(T{1} / std::sqrt(v + static_cast<T>(plan_.epsilon)));
  }
  return inverse;
}

template <typename T>
void BatchNormLayer<T>::Apply(const StepContext<T>& step, const T* in, absl::Span<const T> mean,
                              absl::Span<const T> variance, T* out) {
  std::vector<T> scale = Inverse(variance);
  for (int64_t c = 0; c < channels_; ++c) scale[c] = parameters_.weights[c] * scale[c];
  GetVectorUnit<T>().normalise(step.images * places_, channels_, in, PerChannel<T>(mean),
                               PerChannel<T>(scale), PerChannel<T>(parameters_.biases), out);
}

template <typename T>
void BatchNormLayer<T>::ClearInvalid(const StepContext<T>& step, T* out) const {
  for (int64_t image = 0; image < step.images; ++image) {
    if (step.valid[image] != 0) continue;
    std::fill_n(out + image * plan_.output.size(), plan_.output.size(), T{0});
  }
}

template <typename T>
void BatchNormLayer<T>::Forward(int phase, const StepContext<T>& step,
                                absl::Span<const T* const> in, T* out) {
  const auto channels = static_cast<size_t>(channels_);
  if (!step.training) {
    const absl::Span<const T> running = parameters_.statistics;
    return Apply(step, in[0], running.first(channels), running.subspan(channels), out);
  }
  if (phase == 2) {
    for (int64_t c = 0; c < channels_; ++c) variance_[c] = partials_[c] / Count(step);
    Apply(step, in[0], mean_, variance_, out);
    return ClearInvalid(step, out);
  }
  if (phase == 1) {
    for (int64_t c = 0; c < channels_; ++c) mean_[c] = partials_[c] / Count(step);
  }
  partials_.assign(channels, T{0});
  const VectorUnit<T>& unit = GetVectorUnit<T>();
  const PerChannel<T> mean(mean_);
  for (int64_t image = 0; image < step.images; ++image) {
    if (step.valid[image] == 0) continue;
    const T* x = in[0] + image * plan_.input.size();
    if (phase == 0) {
      unit.sum_rows(places_, channels_, x, partials_.data());
    } else {
      unit.sum_squares(places_, channels_, x, mean, partials_.data());
    }
  }
}

template <typename T>
void BatchNormLayer<T>::Backward(int phase, const StepContext<T>& step,
                                 absl::Span<const T* const> in, const T* d_out, T* d_in) {
  const auto channels = static_cast<size_t>(channels_);
  const VectorUnit<T>& unit = GetVectorUnit<T>();
  const PerChannel<T> mean(mean_);
  const std::vector<T> inverse_values = Inverse(variance_);
  const PerChannel<T> inverse(inverse_values);
  if (phase == 0) {
    partials_.assign(2 * channels, T{0});
    for (int64_t image = 0; image < step.images; ++image) {
      if (step.valid[image] == 0) continue;
      const T* x = in[0] + image * plan_.input.size();
      const T* dy = d_out + image * plan_.input.size();
      unit.sum_rows(places_, channels_, dy, partials_.data());
      unit.sum_products(places_, channels_, dy, x, mean, inverse, partials_.data() + channels_);
    }
    // These are the shard's own sums, because the all-reduce of the gradients adds them up over the
    // shards.
    std::copy_n(partials_.begin(), channels_, parameters_.bias_gradients.begin());
    std::copy_n(partials_.begin() + channels_, channels_, parameters_.weight_gradients.begin());
    return;
  }
  if (d_in == nullptr) return;
  std::vector<T> means = partials_, scale = inverse_values;
  for (T& value : means) value = value / Count(step);
  for (int64_t c = 0; c < channels_; ++c) scale[c] = parameters_.weights[c] * scale[c];
  const absl::Span<const T> all = means;
  const PerChannel<T> mean_dy(all.first(channels)), mean_product(all.subspan(channels));
  const PerChannel<T> scales(scale);
  for (int64_t image = 0; image < step.images; ++image) {
    const int64_t at = image * plan_.input.size();
    if (step.valid[image] == 0) {
      std::fill_n(d_in + at, plan_.input.size(), T{0});
      continue;
    }
    unit.normalise_backward(places_, channels_, in[0] + at, d_out + at, mean, inverse, mean_dy,
                            mean_product, scales, d_in + at);
  }
}

template <typename T>
void BatchNormLayer<T>::UpdateStatistics() {
  const T keep = static_cast<T>(plan_.momentum), take = T{1} - keep;
  absl::Span<T> running = parameters_.statistics;
  for (int64_t c = 0; c < channels_; ++c) {
    running[c] = keep * running[c] + take * mean_[c];
    running[channels_ + c] = keep * running[channels_ + c] + take * variance_[c];
  }
}

template class BatchNormLayer<float>;
template class BatchNormLayer<double>;

}  // namespace systole::emulator
