// Compares published measurements with the emulator's results for the same runs.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_CHIP_PUBLISHED_H_
#define SYSTOLE_CLIENT_EMULATOR_CHIP_PUBLISHED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/emulator/chip/compiler.h"
#include "client/emulator/model/model.h"
#include "systole/v1/chip.pb.h"

namespace systole::emulator {

struct Comparison {
  std::string slice;
  int64_t per_core_batch = 0;
  std::string source;
  double published_examples_per_s = 0;
  double emulated_examples_per_s = 0;
  // 0.1 means that the emulated rate is 10 % higher than the measured rate.
  double misfit() const { return emulated_examples_per_s / published_examples_per_s - 1; }
};

// Compares the emulator with the chip's published measurements of this model. The measurements are
// found by the model's name. The model is compiled at each measurement's slice and batch, with the
// dataflow and the overlap of `options`. The errors are those of CompileProgram.
absl::StatusOr<std::vector<Comparison>> CompareWithPublished(const Model& model,
                                                             const v1::Chip& chip,
                                                             const CompileOptions& options);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_PUBLISHED_H_
