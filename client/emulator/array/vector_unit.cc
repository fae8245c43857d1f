#include "client/emulator/array/vector_unit.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "client/emulator/array/vector_unit.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace systole::emulator {
namespace HWY_NAMESPACE {

template <typename T>
HWY_ATTR void Add(int64_t n, const T* HWY_RESTRICT x, T* HWY_RESTRICT y) {
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] + x[i];
}

template <typename T>
HWY_ATTR void AddBias(int64_t rows, int64_t channels, const PerChannel<T>& bias,
                      T* HWY_RESTRICT x) {
  const T* HWY_RESTRICT b = bias.data();
  const int64_t total = rows * channels, step = bias.size();
  for (int64_t at = 0; at < total; at += step) {
    const int64_t n = std::min(step, total - at);
    for (int64_t i = 0; i < n; ++i) x[at + i] = x[at + i] + b[i];
  }
}

// Adds a term for each element to sums[c], where c is the element's channel. The terms are added in
// the order that VectorUnit::sum_rows defines. The term of element `at + i` is `term(at + i, i)`.
// `i` is the index in a PerChannel of the number for the element's channel.
template <typename T, typename Term>
HWY_INLINE HWY_ATTR void SumOverRows(int64_t rows, int64_t channels, T* sums, const Term& term) {
  const int64_t total = rows * channels, step = RowsAtOnce(channels) * channels;
  std::vector<T> partial_storage(static_cast<size_t>(step));
  T* HWY_RESTRICT partial = partial_storage.data();
  for (int64_t at = 0; at < total; at += step) {
    const int64_t n = std::min(step, total - at);
    for (int64_t i = 0; i < n; ++i) partial[i] = partial[i] + term(at + i, i);
  }
  for (int64_t at = 0; at < step; at += channels) {
    for (int64_t c = 0; c < channels; ++c) sums[c] += partial[at + c];
  }
}

template <typename T>
HWY_ATTR void SumRows(int64_t rows, int64_t channels, const T* HWY_RESTRICT x, T* sums) {
  SumOverRows(rows, channels, sums, [x](int64_t at, int64_t) HWY_ATTR { return x[at]; });
}

template <typename T>
HWY_ATTR void SumSquares(int64_t rows, int64_t channels, const T* HWY_RESTRICT x,
                         const PerChannel<T>& mean, T* sums) {
  const T* HWY_RESTRICT m = mean.data();
  SumOverRows(rows, channels, sums, [x, m](int64_t at, int64_t i) HWY_ATTR {
    const T centred = x[at] - m[i];
    return centred * centred;
  });
}

template <typename T>
HWY_ATTR void SumProducts(int64_t rows, int64_t channels, const T* HWY_RESTRICT dy,
                          const T* HWY_RESTRICT x, const PerChannel<T>& mean,
                          const PerChannel<T>& inverse, T* sums) {
  const T* HWY_RESTRICT m = mean.data();
  const T* HWY_RESTRICT v = inverse.data();
  SumOverRows(rows, channels, sums, [dy, x, m, v](int64_t at, int64_t i) HWY_ATTR {
    return dy[at] * ((x[at] - m[i]) * v[i]);
  });
}

template <typename T>
HWY_ATTR void Normalise(int64_t rows, int64_t channels, const T* HWY_RESTRICT x,
                        const PerChannel<T>& mean, const PerChannel<T>& scale,
                        const PerChannel<T>& shift, T* HWY_RESTRICT y) {
  const T* HWY_RESTRICT m = mean.data();
  const T* HWY_RESTRICT s = scale.data();
  const T* HWY_RESTRICT b = shift.data();
  const int64_t total = rows * channels, step = mean.size();
  for (int64_t at = 0; at < total; at += step) {
    const int64_t n = std::min(step, total - at);
    for (int64_t i = 0; i < n; ++i) y[at + i] = (x[at + i] - m[i]) * s[i] + b[i];
  }
}

template <typename T>
HWY_ATTR void NormaliseBackward(int64_t rows, int64_t channels, const T* HWY_RESTRICT x,
                                const T* HWY_RESTRICT dy, const PerChannel<T>& mean,
                                const PerChannel<T>& inverse, const PerChannel<T>& mean_dy,
                                const PerChannel<T>& mean_product, const PerChannel<T>& scale,
                                T* HWY_RESTRICT dx) {
  const T* HWY_RESTRICT m = mean.data();
  const T* HWY_RESTRICT v = inverse.data();
  const T* HWY_RESTRICT d = mean_dy.data();
  const T* HWY_RESTRICT p = mean_product.data();
  const T* HWY_RESTRICT s = scale.data();
  const int64_t total = rows * channels, step = mean.size();
  for (int64_t at = 0; at < total; at += step) {
    const int64_t n = std::min(step, total - at);
    for (int64_t i = 0; i < n; ++i) {
      const T normal = (x[at + i] - m[i]) * v[i];
      dx[at + i] = ((dy[at + i] - d[i]) - normal * p[i]) * s[i];
    }
  }
}

template <typename T>
HWY_ATTR void Relu(int64_t n, const T* HWY_RESTRICT x, T* HWY_RESTRICT y) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : T{0};
}

template <typename T>
HWY_ATTR void ReluBackward(int64_t n, const T* HWY_RESTRICT x, const T* HWY_RESTRICT dy,
                           T* HWY_RESTRICT dx) {
  for (int64_t i = 0; i < n; ++i) dx[i] = x[i] > 0 ? dy[i] : T{0};
}

template <typename T>
HWY_ATTR void KeepLarger(int64_t n, const T* HWY_RESTRICT x, int32_t p, T* HWY_RESTRICT best,
                         int32_t* HWY_RESTRICT place) {
  for (int64_t i = 0; i < n; ++i) {
    const bool larger = x[i] > best[i];
    place[i] = larger ? p : place[i];
    best[i] = larger ? x[i] : best[i];
  }
}

template <typename T>
HWY_ATTR void AddWhere(int64_t n, const int32_t* HWY_RESTRICT place, int32_t p,
                       const T* HWY_RESTRICT dy, T* HWY_RESTRICT dx) {
  for (int64_t i = 0; i < n; ++i) dx[i] = dx[i] + (place[i] == p ? dy[i] : T{0});
}

template <typename T>
HWY_ATTR void AddDivided(int64_t n, const T* HWY_RESTRICT x, T divisor, T* HWY_RESTRICT y) {
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] + x[i] / divisor;
}

template <typename T>
HWY_ATTR void Update(int64_t n, T rate, T momentum, T decay, const T* HWY_RESTRICT g,
                     T* HWY_RESTRICT v, T* HWY_RESTRICT w) {
  for (int64_t i = 0; i < n; ++i) {
    v[i] = momentum * v[i] + (g[i] + decay * w[i]);
    w[i] = w[i] - rate * v[i];
  }
}

template <typename T>
HWY_ATTR void UpdateLars(int64_t n, T rate, T momentum, T decay, const T* HWY_RESTRICT g,
                         T* HWY_RESTRICT v, T* HWY_RESTRICT w) {
  for (int64_t i = 0; i < n; ++i) {
    v[i] = momentum * v[i] + rate * (g[i] + decay * w[i]);
    w[i] = w[i] - v[i];
  }
}

// On every target, division and square root are rounded correctly (IEEE 754).
template <typename T>
HWY_ATTR void UpdateAdam(int64_t n, const AdamFactors<T>& factors, const T* HWY_RESTRICT g,
                         T* HWY_RESTRICT m, T* HWY_RESTRICT v, T* HWY_RESTRICT w) {
  const AdamFactors<T> f = factors;
  const T rest1 = T{1} - f.beta1, rest2 = T{1} - f.beta2;
  for (int64_t i = 0; i < n; ++i) {
    m[i] = f.beta1 * m[i] + rest1 * g[i];
    v[i] = f.beta2 * v[i] + rest2 * (g[i] * g[i]);
    const T direction = (m[i] / f.correction1) / (std::sqrt(v[i] / f.correction2) + f.epsilon);
    w[i] = w[i] - f.rate * (direction + f.decay * w[i]);
  }
}

template <typename T>
const VectorUnit<T>* Unit() {
  static constexpr VectorUnit<T> kUnit = {
      .add = Add<T>,
      .add_bias = AddBias<T>,
      .sum_rows = SumRows<T>,
      .sum_squares = SumSquares<T>,
      .sum_products = SumProducts<T>,
      .normalise = Normalise<T>,
      .normalise_backward = NormaliseBackward<T>,
      .relu = Relu<T>,
      .relu_backward = ReluBackward<T>,
      .keep_larger = KeepLarger<T>,
      .add_where = AddWhere<T>,
      .add_divided = AddDivided<T>,
      .update = Update<T>,
      .update_lars = UpdateLars<T>,
      .update_adam = UpdateAdam<T>,
  };
  return &kUnit;
}

const VectorUnit<float>* UnitF32() { return Unit<float>(); }
const VectorUnit<double>* UnitF64() { return Unit<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace systole::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole::emulator {

HWY_EXPORT(UnitF32);
HWY_EXPORT(UnitF64);

template <>
const VectorUnit<float>& GetVectorUnit<float>() {
  return *HWY_DYNAMIC_DISPATCH(UnitF32)();
}
template <>
const VectorUnit<double>& GetVectorUnit<double>() {
  return *HWY_DYNAMIC_DISPATCH(UnitF64)();
}

int64_t RowsAtOnce(int64_t channels) {
  constexpr int64_t kElements = 64;
  return std::max<int64_t>(1, kElements / channels);
}

template <typename T>
PerChannel<T>::PerChannel(absl::Span<const T> values) {
  const int64_t rows = RowsAtOnce(static_cast<int64_t>(values.size()));
  repeated_.reserve(static_cast<size_t>(rows) * values.size());
  for (int64_t r = 0; r < rows; ++r) {
    repeated_.insert(repeated_.end(), values.begin(), values.end());
  }
}
template class PerChannel<float>;
template class PerChannel<double>;

}  // namespace systole::emulator
#endif  // HWY_ONCE
