// The costs of the passes of a FusedRow: bytes of memory and time of the vector unit. README.md has
// the tables. Activations are bfloat16, 2 bytes. y is the number of bytes of the output of the
// pass's first layer, and x is the number of bytes of this layer's input.
//
//   first layer         forward           backward
//   an epilogue         none              none (its tensors are charged to the products)
//   batch_norm          2y; 3y if no      5y: 2y for the two sums, 3y to apply
//                       earlier pass took
//                       its statistics
//   layer_norm          2y                3y
//   relu gelu dropout   x + y             3y
//   add                 inputs + y        none: the gradient is shared
//   max pool            x + y             y + 2x
//   average pool        x + y             y + x
// Layers that join a pass add operations but no bytes. The second operand of an add that joins a
// pass costs nothing.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_CHIP_PASS_COST_H_
#define SYSTOLE_CLIENT_EMULATOR_CHIP_PASS_COST_H_

#include <cstdint>

#include "client/emulator/chip/fusion.h"
#include "client/emulator/model/model.h"
#include "systole/v1/chip.pb.h"

namespace systole::emulator {

// How many seconds one core's vector unit takes for `ops` operations on each element. Each lane
// works on one element at a time and does units_per_lane operations in a cycle. So all elements
// take ceil(elements / lanes) * ops / units_per_lane cycles.
double VectorSeconds(double elements, double ops, const v1::Chip& chip);

struct PassCost {
  double bytes = 0;
  double vector_s = 0;
};

struct PassCosts {
  PassCost forward;
  PassCost backward;
};

// The costs of one pass for one core's `batch` examples. The backward costs count only in training.
// If the row has a pass before the batch norm's own pass, that pass has the costs of the batch
// norm's statistics.
PassCosts CostOf(const Model& model, const FusedRow& row, size_t pass, int64_t batch, bool training,
                 const v1::Chip& chip);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_PASS_COST_H_
