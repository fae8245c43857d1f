#include "client/emulator/array/stepped_array.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "client/emulator/array/flush_scope.h"
#include "core/numeric/bf16.h"
#include "core/status/check.h"

namespace systole::emulator {

SteppedArray::SteppedArray(int64_t rows, int64_t columns) : rows_(rows), columns_(columns) {
  SYSTOLE_CHECK(rows > 0 && columns > 0);
  const auto size = static_cast<size_t>(rows * columns);
  weights_.resize(size);
  now_ = next_ = {.a = std::vector<float>(size), .sum = std::vector<float>(size)};
}

void SteppedArray::LoadStep(const std::vector<float>& top) {
  std::copy_backward(weights_.begin(), weights_.end() - columns_, weights_.end());
  std::copy(top.begin(), top.end(), weights_.begin());
}

void SteppedArray::Step(const std::vector<float>& left) {
  for (int64_t r = 0; r < rows_; ++r) {
    for (int64_t c = 0; c < columns_; ++c) {
      const int64_t here = r * columns_ + c;
      const float a = c == 0 ? left[r] : now_.a[here - 1];
      const float sum = r == 0 ? 0.0f : now_.sum[here - columns_];
      next_.a[here] = a;
      next_.sum[here] = std::fma(a, weights_[here], sum);
    }
  }
  std::swap(now_, next_);
}

SteppedArray::Cycles SteppedArray::Multiply(const uint16_t* a, const uint16_t* b, int64_t m,
                                            int64_t k, int64_t n, float* out) {
  const FlushScope flush;
  Cycles cycles;
  std::fill_n(out, m * n, 0.0f);
  std::vector<float> top(columns_), left(rows_);
  for (int64_t n0 = 0; n0 < n; n0 += columns_) {
    for (int64_t k0 = 0; k0 < k; k0 += rows_) {
      // The last row goes in first: it has the longest way.
      for (int64_t r = rows_ - 1; r >= 0; --r, ++cycles.load) {
        for (int64_t c = 0; c < columns_; ++c) {
          const bool used = k0 + r < k && n0 + c < n;
          top[c] = used ? Bf16ToFloat(b[(k0 + r) * n + n0 + c]) : -0.0f;
        }
        LoadStep(top);
      }
      int64_t to_leave = m * columns_;
      for (int64_t t = 0; to_leave > 0; ++t, ++cycles.stream) {
        for (int64_t r = 0; r < rows_; ++r) {
          const int64_t row = t - r;  // The skew.
          const bool used = row >= 0 && row < m && k0 + r < k;
          left[r] = used ? Bf16ToFloat(a[row * k + k0 + r]) : 0.0f;
        }
        Step(left);
        for (int64_t c = 0; c < columns_; ++c) {
          const int64_t row = t - (rows_ - 1) - c;  // Whose sum is in the last row's register now.
          if (row < 0 || row >= m) continue;
          --to_leave;
          if (n0 + c < n) out[row * n + n0 + c] += now_.sum[(rows_ - 1) * columns_ + c];
        }
      }
    }
  }
  return cycles;
}

}  // namespace systole::emulator
