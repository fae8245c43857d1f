// Prints a ChipProgram, as text for people and as JSON for other programs.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_CHIP_PROGRAM_TEXT_H_
#define SYSTOLE_CLIENT_EMULATOR_CHIP_PROGRAM_TEXT_H_

#include <string>
#include <vector>

#include "client/emulator/chip/chip_program.h"
#include "client/emulator/chip/published.h"
#include "core/json/json_writer.h"

namespace systole::emulator {

// One line for every row of layers, then the totals, then the comparisons if there are any.
std::string ProgramTable(const ChipProgram& program, const std::vector<Comparison>& published);

// One line for every operation, in order.
std::string ProgramListing(const ChipProgram& program);

// Writes one object: the facts, "layers", "step", "infeed", "published", and, if wanted,
// "operations". Numbers are in seconds, bytes and flops, without prefixes such as milli or mega.
void WriteProgram(const ChipProgram& program, const std::vector<Comparison>& published,
                  bool with_operations, JsonWriter& json);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_PROGRAM_TEXT_H_
