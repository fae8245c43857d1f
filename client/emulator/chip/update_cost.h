// The cost of an optimizer's update for each parameter, in f32.
//              bytes                              operations  numbers kept
//   SGD        12: reads w, g; writes w           2           0
//   momentum   20: reads w, m, g; writes w, m     3           1 (m)
//   LARS       28: reads w, g for their norms,    7           1 (m)
//              then as momentum
//   Adam       28: reads w, m, v, g; writes       12          2 (m, v)
//              w, m, v
// The operations of LARS and Adam are counted in the formulas of model.proto. A square root counts
// as one operation.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_CHIP_UPDATE_COST_H_
#define SYSTOLE_CLIENT_EMULATOR_CHIP_UPDATE_COST_H_

#include <cstdint>

#include "systole/v1/model.pb.h"

namespace systole::emulator {

struct UpdateCost {
  double bytes_per_parameter = 0;
  double ops_per_parameter = 0;
  // How many numbers the optimizer keeps for each parameter, besides the parameter and its
  // gradient.
  int64_t numbers_per_parameter = 0;
};

UpdateCost UpdateCostOf(const v1::Optimizer& optimizer);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_UPDATE_COST_H_
