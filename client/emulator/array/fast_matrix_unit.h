// The matrix unit's numerics `fast`: oneDNN multiplies the PatchMatrices. oneDNN cannot read
// patches in place, so they are copied out first, a block of rows at a time.
//
// Single-thread: one thread at a time may use it, as with the MatrixUnit that owns it.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_FAST_MATRIX_UNIT_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_FAST_MATRIX_UNIT_H_

#include <cstdint>

#include "client/emulator/array/device_array.h"
#include "client/emulator/array/onednn_gemm.h"
#include "client/emulator/array/patch_matrix.h"

namespace systole::emulator {

class FastMatrixUnit {
 public:
  // Like the functions of MatrixUnit<float>, but they return false if this CPU or this product is
  // not supported. If they return false, the contents of `out` are unspecified.
  bool Multiply(const PatchMatrix<uint16_t>& a, const uint16_t* b, int64_t n, float* out,
                int64_t out_stride);
  bool MultiplyTransposed(const PatchMatrix<uint16_t>& a, const PatchMatrix<uint16_t>& b,
                          float* out, int64_t out_stride);

  // The most elements of one block that is copied out, if the wider of a product's two matrices has
  // `columns` columns. A unit keeps two blocks.
  static int64_t MostBlockElements(int64_t columns);

 private:
  OneDnnGemm gemm_;
  DeviceArray<uint16_t> a_block_, b_block_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_FAST_MATRIX_UNIT_H_
