// Adds up a program's operations: the totals of each layer and of the step.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_CHIP_PROGRAM_TOTALS_H_
#define SYSTOLE_CLIENT_EMULATOR_CHIP_PROGRAM_TOTALS_H_

#include "client/emulator/chip/chip_program.h"
#include "systole/v1/chip.pb.h"

namespace systole::emulator {

// Fills in the sums of `program.layers` and `program.step` from `program.ops` and
// `program.overlap`. REQUIRES: the sums are 0, and every op's `layer` is -1 or an index into
// `layers`.
void AddUpTotals(const v1::Chip& chip, ChipProgram& program);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_PROGRAM_TOTALS_H_
