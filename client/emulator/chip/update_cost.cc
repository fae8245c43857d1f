#include "client/emulator/chip/update_cost.h"

namespace systole::emulator {

UpdateCost UpdateCostOf(const v1::Optimizer& optimizer) {
  switch (optimizer.algorithm_case()) {
    case v1::Optimizer::kAdam:
      return {.bytes_per_parameter = 28, .ops_per_parameter = 12, .numbers_per_parameter = 2};
    case v1::Optimizer::kLars:
      return {.bytes_per_parameter = 28, .ops_per_parameter = 7, .numbers_per_parameter = 1};
    case v1::Optimizer::ALGORITHM_NOT_SET:
      break;
  }
  if (optimizer.momentum() == 0) return {.bytes_per_parameter = 12, .ops_per_parameter = 2};
  return {.bytes_per_parameter = 20, .ops_per_parameter = 3, .numbers_per_parameter = 1};
}

}  // namespace systole::emulator
