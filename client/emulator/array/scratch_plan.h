// Says how much scratch memory a matrix unit's products take, before any memory is allocated.
// Operands are packed into this memory before they are multiplied. How large the operands are
// depends on the model's text.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_SCRATCH_PLAN_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_SCRATCH_PLAN_H_

#include <cstdint>

#include "client/emulator/array/numerics.h"

namespace systole::emulator {

class ScratchPlan {
 public:
  explicit ScratchPlan(Numerics numerics) : numerics_(numerics) {}

  // Adds a MatrixUnit<float>::Multiply of any number of rows with a matrix [k, n].
  void AddMultiply(int64_t k, int64_t n);
  // Adds a MatrixUnit<float>::MultiplyTransposed of [any, m] and [any, n].
  void AddMultiplyTransposed(int64_t m, int64_t n);

  // The most bytes that a unit holds, on any CPU, after it has computed all products that were
  // added. In numerics `fast` oneDNN takes more memory for itself. That amount is known only after
  // oneDNN has planned the product.
  int64_t bytes() const;

 private:
  const Numerics numerics_;
  // How many elements each of the unit's arrays must have for the largest product. `widest_` is the
  // length of the longest row that numerics `fast` copies.
  int64_t packed_a_ = 0, packed_b_ = 0, row_ = 0, widest_ = 0;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_SCRATCH_PLAN_H_
