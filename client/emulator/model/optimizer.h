// Checks the optimizer in a model's text, and computes the learning rate of a step.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_MODEL_OPTIMIZER_H_
#define SYSTOLE_CLIENT_EMULATOR_MODEL_OPTIMIZER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "systole/v1/model.pb.h"

namespace systole::emulator {

// The optimizer with its absent numbers filled in (betas, epsilon, trust coefficient).
//   InvalidArgument  a value is out of range, or two values exclude each other. The message names
//                    the field.
absl::StatusOr<v1::Optimizer> CompileOptimizer(const v1::Optimizer& optimizer);

// The learning rate of `step` (counted from 0), with the optimizer's warm-up and decay.
float LearningRate(const v1::Optimizer& optimizer, int64_t step);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_MODEL_OPTIMIZER_H_
