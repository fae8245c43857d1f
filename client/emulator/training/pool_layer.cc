#include "client/emulator/training/pool_layer.h"

#include <algorithm>

#include "client/emulator/array/vector_unit.h"

namespace systole::emulator {

template <typename T>
void ReluLayer<T>::Forward(int /*phase*/, const StepContext<T>& step, absl::Span<const T* const> in,
                           T* out) {
  GetVectorUnit<T>().relu(step.images * size_, in[0], out);
}

template <typename T>
void ReluLayer<T>::Backward(int /*phase*/, const StepContext<T>& step,
                            absl::Span<const T* const> in, const T* d_out, T* d_in) {
  if (d_in != nullptr) GetVectorUnit<T>().relu_backward(step.images * size_, in[0], d_out, d_in);
}

template <typename T>
PoolLayer<T>::PoolLayer(const LayerPlan& plan, int64_t images)
    : plan_(plan), place_(Places(plan, images)) {}

template <typename T>
template <typename Visit>
void PoolLayer<T>::ForEachPlace(int64_t images, const Visit& visit) const {
  const Window& w = plan_.window;
  const Shape &in = plan_.input, &out = plan_.output;
  int64_t out_at = 0;
  for (int64_t image = 0; image < images; ++image) {
    for (int64_t oy = 0; oy < out.height; ++oy) {
      const int64_t y0 = oy * w.stride - w.pad_top;
      const int64_t y_begin = std::max<int64_t>(y0, 0), y_end = std::min(y0 + w.size_y, in.height);
      for (int64_t ox = 0; ox < out.width; ++ox, out_at += out.channels) {
        const int64_t x0 = ox * w.stride - w.pad_left;
        const int64_t x_begin = std::max<int64_t>(x0, 0);
        const int64_t x_end = std::min(x0 + w.size_x, in.width);
        const int64_t inside = (y_end - y_begin) * (x_end - x_begin);
        int32_t place = 0;
        for (int64_t y = y_begin; y < y_end; ++y) {
          for (int64_t x = x_begin; x < x_end; ++x, ++place) {
            visit(out_at, ((image * in.height + y) * in.width + x) * in.channels, place, inside);
          }
        }
      }
    }
  }
}

template <typename T>
void PoolLayer<T>::Forward(int /*phase*/, const StepContext<T>& step, absl::Span<const T* const> in,
                           T* out) {
  const VectorUnit<T>& unit = GetVectorUnit<T>();
  const int64_t channels = plan_.input.channels;
  if (plan_.kind == LayerKind::kMaxPool) {
    ForEachPlace(step.images, [&](int64_t out_at, int64_t in_at, int32_t place, int64_t) {
      if (place == 0) {
        std::copy_n(in[0] + in_at, channels, out + out_at);
        std::fill_n(place_.data() + out_at, channels, 0);
      } else {
        unit.keep_larger(channels, in[0] + in_at, place, out + out_at, place_.data() + out_at);
      }
    });
    return;
  }
  std::fill_n(out, step.images * plan_.output.size(), T{0});
  ForEachPlace(step.images, [&](int64_t out_at, int64_t in_at, int32_t, int64_t inside) {
    unit.add_divided(channels, in[0] + in_at, static_cast<T>(inside), out + out_at);
  });
}

template <typename T>
void PoolLayer<T>::Backward(int /*phase*/, const StepContext<T>& step,
                            absl::Span<const T* const> /*in*/, const T* d_out, T* d_in) {
  if (d_in == nullptr) return;
  const VectorUnit<T>& unit = GetVectorUnit<T>();
  const int64_t channels = plan_.input.channels;
  std::fill_n(d_in, step.images * plan_.input.size(), T{0});
  ForEachPlace(step.images, [&](int64_t out_at, int64_t in_at, int32_t place, int64_t inside) {
    if (plan_.kind == LayerKind::kMaxPool) {
      unit.add_where(channels, place_.data() + out_at, place, d_out + out_at, d_in + in_at);
    } else {
      unit.add_divided(channels, d_out + out_at, static_cast<T>(inside), d_in + in_at);
    }
  });
}

template class ReluLayer<float>;
template class ReluLayer<double>;
template class PoolLayer<float>;
template class PoolLayer<double>;

}  // namespace systole::emulator
