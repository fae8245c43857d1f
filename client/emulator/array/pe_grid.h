// The processing elements (PEs) of a systolic array, as registers, and how one cycle changes the
// registers.
//
//              top(c)                 PE (r, c) holds four numbers:
//                |                      a       operand that moves right, one PE a cycle
//   left(r) -> PE(r,c) -> a             b       the other operand: stays, or moves down
//                |                      shadow  the next b, loaded meanwhile if b stays
//                v                      sum     moves down, or stays
//            b or sum
//
// All registers of the grid change at the same time, once per cycle: a new value depends only on
// values before the cycle. On every instruction set, a multiply-add rounds only once. Subnormals
// are flushed, because the caller holds a FlushScope. Thread-compatible.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_PE_GRID_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_PE_GRID_H_

#include <cstdint>

#include "client/emulator/array/device_array.h"

namespace systole::emulator {

class PeGrid {
 public:
  struct Pe {
    float a = 0, b = 0, shadow = 0, sum = 0;
  };

  // All registers start as +0. REQUIRES: rows, columns in [1, 2^31).
  PeGrid(int64_t rows, int64_t columns);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }

  // Sets all registers and all entering values to +0.
  void Clear();

  // The registers of PE (r, c) after the last cycle.
  Pe At(int64_t r, int64_t c) const;
  // The sum that leaves the array below PE (rows - 1, c).
  float bottom(int64_t c) const { return sum_[RowStart(rows_ - 1) + c]; }

  // The values that enter the grid in the next cycle. They start as +0. A value enters in every
  // cycle until the caller overwrites it.
  float& left(int64_t r) { return a_[RowStart(r) - 1]; }              // Column 0's a.
  float& top_b(int64_t c) { return b_[RowStart(-1) + c]; }            // Row 0's b.
  float& top_shadow(int64_t c) { return shadow_[RowStart(-1) + c]; }  // Row 0's shadow.

  // How many shadow registers of column c, from the top, shift down in the next StreamCycle.
  int32_t& shift_depth(int64_t c) { return shift_depth_[c]; }

  // Sets b = shadow in the PEs with r + c = diagonal. Call it before the cycle in which the first
  // row of a tile reaches this diagonal. A diagonal outside the grid has no PEs, and the call does
  // nothing.
  void TakeShadow(int64_t diagonal);

  // One cycle with a stationary operand: `a` moves right, sum = fma(a, b, the upper neighbour's
  // sum), +0 enters from above. In each column the top shift_depth() shadow registers shift down by
  // one. `loading` must be true if shift_depth() of any column is not 0.
  void StreamCycle(bool loading);
  // One cycle with stationary sums: `a` moves right, `b` moves down, sum = fma(a, b, sum).
  void AccumulateCycle();
  // One cycle in which stationary sums leave: sums move down, +0 enters from above; `a` and `b`
  // move as in AccumulateCycle().
  void DrainCycle();

  // Rows of registers are padded. A row has one number for each column, and at most kMostPadding
  // numbers of padding.
  static constexpr int64_t kMostPadding = 31;

  // Pointers to the registers, whose rows are `stride` elements apart. The entering values lie in
  // one more row above the first row, and in kMargin elements left of each row. Public only for the
  // kernels.
  struct Planes {
    float *a, *b, *shadow, *sum;  // PE (0, 0).
    const int32_t* shift_depth;
    // These `columns` are the grid's columns, rounded up to whole vectors.
    int64_t rows, columns, stride;
  };

 private:
  // As many floats as the widest vector has, so that rows stay aligned.
  static constexpr int64_t kMargin = 16;
  int64_t RowStart(int64_t r) const { return (r + 1) * stride_ + kMargin; }
  Planes planes();

  int64_t rows_, columns_, stride_;
  DeviceArray<float> a_, b_, shadow_, sum_;
  DeviceArray<int32_t> shift_depth_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_PE_GRID_H_
