// A weight-stationary systolic array stepped cycle by cycle and element by element: the oracle of
// the matrix unit's values and of its cycle count. Slow by design; nothing trains on it.
//
//            column 0   column 1
//   a[.,0] -> PE(0,0) -> PE(0,1) -> .      each PE keeps one weight; per cycle it takes a from its
//               |          |               left and a sum from above, adds a * weight to the sum
//               and
//   a[.,1] -> PE(1,0) -> PE(1,1) -> .      passes both on. Row r's inputs come r cycles late (the
//               v          v               skew), sums leave below the last row.
//
// Loading weights takes R cycles (they shift in from above), a block of M rows then M + R + C - 2.
// Blocks of the summed dimension are added up in f32 outside the array.
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_STEPPED_ARRAY_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_STEPPED_ARRAY_H_

#include <cstdint>
#include <vector>

namespace systole::emulator {

class SteppedArray {
 public:
  // REQUIRES: rows, columns > 0.
  SteppedArray(int64_t rows, int64_t columns);

  struct Cycles {
    int64_t load = 0;
    int64_t stream = 0;
  };

  // out = a * b by folding [k, n] onto the array; a [m, k] and b [k, n] are bf16, row-major. Places
  // of the array that a fold does not use hold the weight -0 (x + (0 * -0) is x for every x, -0
  // included, so they change no bit). Returns the cycles of all folds, one after the other. Sets
  // FlushScope.
  Cycles Multiply(const uint16_t* a, const uint16_t* b, int64_t m, int64_t k, int64_t n,
                  float* out);

 private:
  // All registers change together: `next_` is computed from the former state, then swapped in.
  struct Registers {
    std::vector<float> a, sum;
  };
  // Shifts one row of weights in from above.
  void LoadStep(const std::vector<float>& top);
  // One cycle with `left[r]` entering row r.
  void Step(const std::vector<float>& left);

  const int64_t rows_, columns_;
  std::vector<float> weights_;
  Registers now_, next_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_STEPPED_ARRAY_H_
