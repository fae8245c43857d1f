// Runs drawn programs (random_program.h) in two ways: by the interpreter, and as lowered programs.
#ifndef SYSTOLE_TESTS_CORE_OPERATIONS_COMPARED_PROGRAMS_H_
#define SYSTOLE_TESTS_CORE_OPERATIONS_COMPARED_PROGRAMS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/core/operations/random_program.h"

namespace systole {

// Runs the program with the interpreter, casts the result to the dtype of the drawn output, and
// returns the bytes. Returns an error if an operation fails.
absl::StatusOr<std::vector<uint8_t>> InterpretDrawn(const RandomProgram& drawn,
                                                    const Program& program);

// Returns "" if the lowered program and the interpreter make the same bytes, or if both fail.
// Otherwise returns the difference.
std::string CompareLowered(const RandomProgram& drawn, std::shared_ptr<const Program> program);

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_OPERATIONS_COMPARED_PROGRAMS_H_
