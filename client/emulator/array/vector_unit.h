// The vector unit: element-wise work and sums over rows, in f32, or in f64 for gradient checks.
//
// The functions are plain loops, compiled for every instruction set. The instruction set is chosen
// at run time. No multiplication is fused with an addition, and the loops fix the order of every
// sum. So all targets give the same bits.
//
// A batch is a row-major matrix [rows, channels]. Each row holds the channels of one place of one
// example. Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_VECTOR_UNIT_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_VECTOR_UNIT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace systole::emulator {

// One number per channel, repeated so that loops can run over several rows at once. A loop over a
// single row of 3 or 16 channels would be too short: the row does not fill a vector, or takes less
// time than the overhead of the loop.
template <typename T>
class PerChannel {
 public:
  explicit PerChannel(absl::Span<const T> values);
  const T* data() const { return repeated_.data(); }
  // The number of elements in `data()`, a multiple of the number of channels.
  int64_t size() const { return static_cast<int64_t>(repeated_.size()); }

 private:
  std::vector<T> repeated_;
};

// How many rows of `channels` numbers one PerChannel covers.
int64_t RowsAtOnce(int64_t channels);

// The numbers for one step of Adam. correction1 and correction2 are 1 - beta1^t and 1 - beta2^t for
// step t, counted from 1.
template <typename T>
struct AdamFactors {
  T rate, beta1, beta2, correction1, correction2, epsilon, decay;
};

template <typename T>
struct VectorUnit {
  // y += x.
  void (*add)(int64_t n, const T* x, T* y);
  // x[r, c] += bias[c].
  void (*add_bias)(int64_t rows, int64_t channels, const PerChannel<T>& bias, T* x);
  // sums[c] += sum over rows of x[r, c]. Each channel has RowsAtOnce(channels) partial sums. Rows
  // are added in ascending order, row r to partial sum r % RowsAtOnce(channels). Then the partial
  // sums are added to sums[c], in ascending order.
  void (*sum_rows)(int64_t rows, int64_t channels, const T* x, T* sums);
  // Like sum_rows, for (x[r, c] - mean[c])^2.
  void (*sum_squares)(int64_t rows, int64_t channels, const T* x, const PerChannel<T>& mean,
                      T* sums);
  // Like sum_rows, for dy[r, c] * ((x[r, c] - mean[c]) * inverse[c]).
  void (*sum_products)(int64_t rows, int64_t channels, const T* dy, const T* x,
                       const PerChannel<T>& mean, const PerChannel<T>& inverse, T* sums);
  // y = (x - mean) * scale + shift.
  void (*normalise)(int64_t rows, int64_t channels, const T* x, const PerChannel<T>& mean,
                    const PerChannel<T>& scale, const PerChannel<T>& shift, T* y);
  // dx = ((dy - mean_dy) - ((x - mean) * inverse) * mean_product) * scale.
  void (*normalise_backward)(int64_t rows, int64_t channels, const T* x, const T* dy,
                             const PerChannel<T>& mean, const PerChannel<T>& inverse,
                             const PerChannel<T>& mean_dy, const PerChannel<T>& mean_product,
                             const PerChannel<T>& scale, T* dx);
  // y = x > 0 ? x : +0. NaN gives +0.
  void (*relu)(int64_t n, const T* x, T* y);
  // dx = x > 0 ? dy : +0.
  void (*relu_backward)(int64_t n, const T* x, const T* dy, T* dx);
  // Where x > best: best = x, place = p. So of equal values the first one is kept.
  void (*keep_larger)(int64_t n, const T* x, int32_t p, T* best, int32_t* place);
  // dx += dy where place == p.
  void (*add_where)(int64_t n, const int32_t* place, int32_t p, const T* dy, T* dx);
  // y += x / divisor.
  void (*add_divided)(int64_t n, const T* x, T divisor, T* y);
  // v = momentum * v + (g + decay * w);  w = w - rate * v.
  void (*update)(int64_t n, T rate, T momentum, T decay, const T* g, T* v, T* w);
  // v = momentum * v + rate * (g + decay * w);  w = w - v.
  void (*update_lars)(int64_t n, T rate, T momentum, T decay, const T* g, T* v, T* w);
  // m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * (g * g);
  // w = w - rate * ((m / correction1) / (sqrt(v / correction2) + epsilon) + decay * w).
  void (*update_adam)(int64_t n, const AdamFactors<T>& factors, const T* g, T* m, T* v, T* w);
};

// The functions for the instruction set that is in use (core/numeric/simd_target.h).
template <typename T>
const VectorUnit<T>& GetVectorUnit();

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_VECTOR_UNIT_H_
