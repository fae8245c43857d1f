// The matrix unit. It multiplies two matrices as a weight-stationary systolic array with kArrayRows
// rows does.
//
//   MatrixUnit<float>   numerics `exact`: operands are bf16, sums are f32 in the order `mxu128`:
//                         for each slab of 128 (the array's height) along the summed dimension:
//                           c = +0;  for k ascending in the slab:  c = fma(a[k], b[k], c)
//                           acc = acc + c          (acc starts as +0)
//                       Subnormals are flushed (the caller holds a FlushScope). The code is
//                       vectorised, but gives the bits of the loop above on every instruction set.
//                       Only the payload of a NaN may differ.
//                       Numerics `fast`: the same operands, sums in oneDNN's order (numerics.h).
//   MatrixUnit<double>  for gradient checks. Nothing is rounded to bf16: f64 operands, f64 sums in
//                       the order of k.
//
// Single-thread: one thread at a time may use a unit. Each shard of an emulated core owns a unit
// with its scratch memory.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_MATRIX_UNIT_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_MATRIX_UNIT_H_

#include <cstdint>

#include "client/emulator/array/device_array.h"
#include "client/emulator/array/fast_matrix_unit.h"
#include "client/emulator/array/numerics.h"
#include "client/emulator/array/patch_matrix.h"

namespace systole::emulator {

// The height of the array, which is also the length of a slab in the summation order.
inline constexpr int64_t kArrayRows = 128;

// The type of a matrix unit's operands: bf16 bits, or double if nothing is rounded.
template <typename T>
struct OperandOf {
  using Type = T;
};
template <>
struct OperandOf<float> {
  using Type = uint16_t;
};
template <typename T>
using Operand = typename OperandOf<T>::Type;

template <typename T>
class MatrixUnit;

template <>
class MatrixUnit<float> {
 public:
  explicit MatrixUnit(Numerics numerics = Numerics::kExact) : numerics_(numerics) {}

  // out[m, n] = sum over k of a[m, k] * b[k, n]; m = a.rows(), k = a.columns(). `b` is row-major
  // [k, n]. `out` is row-major, and its rows are `out_stride` elements apart. kArraySlack elements
  // after the end of `b` must be readable.
  void Multiply(const PatchMatrix<uint16_t>& a, const uint16_t* b, int64_t n, float* out,
                int64_t out_stride);

  // out[m, n] = sum over r of a[r, m] * b[r, n]: the transpose of `a`, multiplied by `b`.
  // REQUIRES: a.rows() == b.rows().
  void MultiplyTransposed(const PatchMatrix<uint16_t>& a, const PatchMatrix<uint16_t>& b,
                          float* out, int64_t out_stride);

  // Scratch memory. It grows to what the largest product so far needed (scratch_plan.h). Public
  // only for the kernels.
  struct Scratch {
    DeviceArray<float> a, b, row, tile;
  };

 private:
  Numerics numerics_;
  Scratch scratch_;
  FastMatrixUnit fast_;
};

template <>
class MatrixUnit<double> {
 public:
  // The argument has no effect: it chooses the numerics for float only.
  explicit MatrixUnit(Numerics /*numerics*/ = Numerics::kExact) {}

  void Multiply(const PatchMatrix<double>& a, const double* b, int64_t n, double* out,
                int64_t out_stride);
  void MultiplyTransposed(const PatchMatrix<double>& a, const PatchMatrix<double>& b, double* out,
                          int64_t out_stride);
};

// The definition of `exact` as a plain loop. `a` is [m, k] and `b` is [k, n], bf16, row-major. A
// slab has `array_rows` terms. The vector code and the stepped array are tested against this loop.
// Sets FlushScope.
void MultiplyByDefinition(const uint16_t* a, const uint16_t* b, int64_t m, int64_t k, int64_t n,
                          int64_t array_rows, float* out);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_MATRIX_UNIT_H_
