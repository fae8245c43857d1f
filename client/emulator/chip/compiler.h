// Lowers a model to a ChipProgram for one chip. Shapes are static, so all costs are known in
// advance.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_CHIP_COMPILER_H_
#define SYSTOLE_CLIENT_EMULATOR_CHIP_COMPILER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/emulator/array/cycle_model.h"
#include "client/emulator/chip/chip_program.h"
#include "client/emulator/chip/infeed_layout.h"
#include "client/emulator/model/model.h"
#include "core/tensor/dtype.h"
#include "systole/v1/chip.pb.h"

namespace systole::emulator {

struct CompileOptions {
  // The number of examples that a core takes in one step, 1 to 2^20.
  int64_t per_core_batch = 1;
  // The name of one of the chip's slices. Empty: the chip's first slice.
  std::string slice;
  // SCALE-Sim's dataflows need a chip with one matrix unit a core.
  Dataflow dataflow = Dataflow::kWsDb;
  // Replaces the chip's `overlap`. Absent: the chip's value.
  std::optional<double> overlap;
  // false: only the forward pass, with batch norm folded into its convolution.
  bool training = true;
  // The type of the model's input, and how the chip stores the input.
  DType dtype = DType::kBfloat16;
  InfeedLayout layout = InfeedLayout::kHwcnTiled;
};

//   InvalidArgument  the chip is invalid (see CheckChip), an option is out of range, or a layer's
//                    matrix product is too large for the cycle model; the message names the layer.
//   NotFound         the chip has no such slice. The message lists the slices that it has.
absl::StatusOr<ChipProgram> CompileProgram(const Model& model, const v1::Chip& chip,
                                           const CompileOptions& options);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_COMPILER_H_
