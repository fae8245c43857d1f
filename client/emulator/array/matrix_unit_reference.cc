// The matrix unit's products as plain loops: the definition in f32, and the f64 products for
// gradient checks.
#include <algorithm>
#include <cmath>

#include "client/emulator/array/flush_scope.h"
#include "client/emulator/array/matrix_unit.h"
#include "core/numeric/bf16.h"

namespace systole::emulator {
namespace {

const double* RowStart(const PatchMatrix<double>& p, int64_t row) {
  const int64_t x = row % p.width, y = row / p.width % p.height, image = row / p.width / p.height;
  return p.data + image * p.image_stride + y * p.y_stride + x * p.x_stride;
}
// Element (row, column) of a patch matrix. `row_start` is RowStart(p, row).
double ElementAt(const PatchMatrix<double>& p, const double* row_start, int64_t column) {
  return row_start[column / p.run_length * p.run_stride + column % p.run_length];
}

}  // namespace

void MatrixUnit<double>::Multiply(const PatchMatrix<double>& a, const double* b, int64_t n,
                                  double* out, int64_t out_stride) {
  for (int64_t r = 0; r < a.rows(); ++r) {
    double* sums = out + r * out_stride;
    std::fill_n(sums, n, 0.0);
    const double* row = RowStart(a, r);
    for (int64_t k = 0; k < a.columns(); ++k) {
      const double value = ElementAt(a, row, k);
      for (int64_t c = 0; c < n; ++c) sums[c] += value * b[k * n + c];
    }
  }
}

void MatrixUnit<double>::MultiplyTransposed(const PatchMatrix<double>& a,
                                            const PatchMatrix<double>& b, double* out,
                                            int64_t out_stride) {
  const int64_t m = a.columns(), n = b.columns();
  for (int64_t r = 0; r < m; ++r) std::fill_n(out + r * out_stride, n, 0.0);
  for (int64_t k = 0; k < a.rows(); ++k) {
    const double *a_row = RowStart(a, k), *b_row = RowStart(b, k);
    for (int64_t r = 0; r < m; ++r) {
      const double value = ElementAt(a, a_row, r);
      for (int64_t c = 0; c < n; ++c) out[r * out_stride + c] += value * ElementAt(b, b_row, c);
    }
  }
}

void MultiplyByDefinition(const uint16_t* a, const uint16_t* b, int64_t m, int64_t k, int64_t n,
                          int64_t array_rows, float* out) {
  const FlushScope flush;
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t c = 0; c < n; ++c) {
      float acc = 0;
      for (int64_t k0 = 0; k0 < k; k0 += array_rows) {
        float sum = 0;
        for (int64_t i = k0; i < std::min(k, k0 + array_rows); ++i) {
          sum = std::fma(Bf16ToFloat(a[r * k + i]), Bf16ToFloat(b[i * n + c]), sum);
        }
        acc += sum;
      }
      out[r * n + c] = acc;
    }
  }
}

}  // namespace systole::emulator
