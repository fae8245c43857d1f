#include "client/emulator/training/linear_layer.h"

#include <algorithm>

#include "client/emulator/array/vector_unit.h"
#include "core/numeric/bf16.h"

namespace systole::emulator {
namespace {

void RoundToOperands(int64_t n, const float* in, uint16_t* out) {
  RoundToBf16Flush(absl::MakeConstSpan(in, static_cast<size_t>(n)),
                   absl::MakeSpan(out, static_cast<size_t>(n)));
}
void RoundToOperands(int64_t n, const double* in, double* out) { std::copy_n(in, n, out); }

}  // namespace

template <typename T>
typename LinearLayer<T>::Geometry LinearLayer<T>::InputGeometry(const LayerPlan& plan) {
  const Window& w = plan.window;
  return {.height = (plan.output.height - 1) * w.stride + w.size_y,
          .width = (plan.output.width - 1) * w.stride + w.size_x,
          .channels = plan.input.channels};
}

// The size of one image of rounded_gradient_. With `needs_d_in` the image has a rim of zeros, so
// that a whole window of gradients can be read for every input place, also at the edge.
template <typename T>
typename LinearLayer<T>::Geometry LinearLayer<T>::GradientGeometry(const LayerPlan& plan,
                                                                   bool needs_d_in) {
  if (!needs_d_in) {
    return {
        .height = plan.output.height, .width = plan.output.width, .channels = plan.output.channels};
  }
  const Window& w = plan.window;
  return {.height = w.pad_top + plan.input.height + w.size_y - 1,
          .width = w.pad_left + plan.input.width + w.size_x - 1,
          .channels = plan.output.channels};
}

template <typename T>
LinearLayer<T>::LinearLayer(const LayerPlan& plan, int64_t images, bool needs_d_in,
                            const LayerParameters<T>& parameters)
    : plan_(plan),
      parameters_(parameters),
      in_(InputGeometry(plan)),
      gradient_(GradientGeometry(plan, needs_d_in)),
      rim_(needs_d_in ? plan.window.size_y - 1 : 0),
      spread_(needs_d_in ? plan.window.stride : 1),
      rounded_in_(images * in_.image()),
      rounded_gradient_(images * gradient_.image()),
      rounded_weights_(plan.weights),
      turned_weights_(needs_d_in ? plan.weights : 0),
      weight_gradient_(plan.weights) {}

template <typename T>
int64_t LinearLayer<T>::Bytes(const LayerPlan& plan, int64_t images, bool needs_d_in) {
  const int64_t operands =
      images * (InputGeometry(plan).image() + GradientGeometry(plan, needs_d_in).image()) +
      (needs_d_in ? 2 : 1) * plan.weights + 4 * kArraySlack;
  return operands * static_cast<int64_t>(sizeof(Operand<T>)) +
         (plan.weights + kArraySlack) * static_cast<int64_t>(sizeof(T));
}

template <typename T>
void LinearLayer<T>::PlanScratch(const LayerPlan& plan, bool needs_d_in, ScratchPlan& scratch) {
  const int64_t channels = plan.input.channels, filters = plan.output.channels;
  const int64_t patch = plan.weights / filters;
  scratch.AddMultiply(patch, filters);
  scratch.AddMultiplyTransposed(filters, patch);
  if (needs_d_in) scratch.AddMultiply(patch / channels * filters, channels);
}

template <typename T>
PatchMatrix<Operand<T>> LinearLayer<T>::InputPatches(int64_t images) const {
  const Window& w = plan_.window;
  return {.data = rounded_in_.data(),
          .images = images,
          .height = plan_.output.height,
          .width = plan_.output.width,
          .image_stride = in_.image(),
          .y_stride = w.stride * in_.row(),
          .x_stride = w.stride * in_.channels,
          .runs = w.size_y,
          .run_length = w.size_x * in_.channels,
          .run_stride = in_.row()};
}

// Only pixels are written, so the rim stays zero.
template <typename T>
void LinearLayer<T>::RoundInput(int64_t images, const T* in) {
  const Window& w = plan_.window;
  const int64_t height = std::min(plan_.input.height, in_.height - w.pad_top);
  const int64_t row = std::min(plan_.input.width, in_.width - w.pad_left) * in_.channels;
  for (int64_t image = 0; image < images; ++image) {
    const T* from = in + image * plan_.input.size();
    Operand<T>* to = rounded_in_.data() + image * in_.image() + w.pad_top * in_.row() +
                     w.pad_left * in_.channels;
    for (int64_t y = 0; y < height; ++y) {
      RoundToOperands(row, from + y * plan_.input.width * in_.channels, to + y * in_.row());
    }
  }
}

template <typename T>
void LinearLayer<T>::RoundGradient(int64_t images, const T* d_out) {
  const int64_t channels = gradient_.channels, row = plan_.output.width * channels;
  for (int64_t image = 0; image < images; ++image) {
    for (int64_t y = 0; y < plan_.output.height; ++y) {
      const T* from = d_out + image * plan_.output.size() + y * row;
      Operand<T>* to = rounded_gradient_.data() + image * gradient_.image() +
                       (rim_ + y * spread_) * gradient_.row() + rim_ * channels;
      if (spread_ == 1) {
        RoundToOperands(row, from, to);
        continue;
      }
      for (int64_t x = 0; x < plan_.output.width; ++x) {
        RoundToOperands(channels, from + x * channels, to + x * spread_ * channels);
      }
    }
  }
}

template <typename T>
void LinearLayer<T>::Forward(int /*phase*/, const StepContext<T>& step,
                             absl::Span<const T* const> in, T* out) {
  RoundInput(step.images, in[0]);
  RoundToOperands(plan_.weights, parameters_.weights.data(), rounded_weights_.data());
  const int64_t filters = plan_.output.channels;
  step.matrix_unit->Multiply(InputPatches(step.images), rounded_weights_.data(), filters, out,
                             filters);
  if (plan_.bias) {
    const int64_t places = step.images * plan_.output.height * plan_.output.width;
    GetVectorUnit<T>().add_bias(places, filters, PerChannel<T>(parameters_.biases), out);
  }
}

template <typename T>
void LinearLayer<T>::MultiplyWeightGradient(const StepContext<T>& step) {
  const int64_t filters = plan_.output.channels, patch = plan_.weights / filters;
  const PatchMatrix<Operand<T>> gradients = {
      .data = rounded_gradient_.data() + rim_ * (gradient_.row() + filters),
      .images = step.images,
      .height = plan_.output.height,
      .width = plan_.output.width,
      .image_stride = gradient_.image(),
      .y_stride = spread_ * gradient_.row(),
      .x_stride = spread_ * filters,
      .runs = 1,
      .run_length = filters,
      .run_stride = 0};
  step.matrix_unit->MultiplyTransposed(gradients, InputPatches(step.images),
                                       weight_gradient_.data(), patch);
  T* to = parameters_.weight_gradients.data();
  for (int64_t p = 0; p < patch; ++p) {
    for (int64_t f = 0; f < filters; ++f) *to++ = weight_gradient_[f * patch + p];
  }
}

template <typename T>
void LinearLayer<T>::MultiplyInputGradient(const StepContext<T>& step, T* d_in) {
  const Window& w = plan_.window;
  const int64_t channels = in_.channels, filters = gradient_.channels;
  // [ky, kx, channel, filter] -> [ky and kx from the end, filter, channel].
  for (int64_t k = 0; k < w.size_y * w.size_x; ++k) {
    const Operand<T>* from = rounded_weights_.data() + k * channels * filters;
    Operand<T>* to = turned_weights_.data() + (w.size_y * w.size_x - 1 - k) * filters * channels;
    for (int64_t f = 0; f < filters; ++f) {
      for (int64_t c = 0; c < channels; ++c) to[f * channels + c] = from[c * filters + f];
    }
  }
  const PatchMatrix<Operand<T>> patches = {
      .data = rounded_gradient_.data() + w.pad_top * gradient_.row() + w.pad_left * filters,
      .images = step.images,
      .height = plan_.input.height,
      .width = plan_.input.width,
      .image_stride = gradient_.image(),
      .y_stride = gradient_.row(),
      .x_stride = filters,
      .runs = w.size_y,
      .run_length = w.size_x * filters,
      .run_stride = gradient_.row()};
  step.matrix_unit->Multiply(patches, turned_weights_.data(), channels, d_in, channels);
}

template <typename T>
void LinearLayer<T>::Backward(int /*phase*/, const StepContext<T>& step,
                              absl::Span<const T* const> /*in*/, const T* d_out, T* d_in) {
  RoundGradient(step.images, d_out);
  MultiplyWeightGradient(step);
  if (plan_.bias) {
    absl::Span<T> sums = parameters_.bias_gradients;
    std::fill(sums.begin(), sums.end(), T{0});
    GetVectorUnit<T>().sum_rows(step.images * plan_.output.height * plan_.output.width,
                                plan_.output.channels, d_out, sums.data());
  }
  if (d_in != nullptr) MultiplyInputGradient(step, d_in);
}

template class LinearLayer<float>;
template class LinearLayer<double>;

}  // namespace systole::emulator
