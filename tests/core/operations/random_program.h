// A program, an example's bytes and its key, all drawn from bytes: for the fuzzer, whose corpus
// holds such bytes, and for tests that try many.
#ifndef SYSTOLE_TESTS_CORE_OPERATIONS_RANDOM_PROGRAM_H_
#define SYSTOLE_TESTS_CORE_OPERATIONS_RANDOM_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/operations/lowered_program.h"
#include "core/operations/ops/draws.h"
#include "systole/v1/feed.pb.h"

namespace systole {

struct RandomProgram {
  v1::Output output;
  std::string stored;         // A JPEG, a PNG or raw bytes, undamaged.
  std::vector<float> floats;  // Instead of `stored`, if the feature has floats.
  std::vector<int64_t> int64s;
  ExampleKey example;
};

// Any bytes will do; many of the programs are refused.
RandomProgram DrawProgram(absl::Span<const uint8_t> bytes);

// The program of `drawn`, null if it is refused or no feed can be made of it.
std::shared_ptr<const Program> CompileDrawn(const RandomProgram& drawn);

// Empty if the lowered program makes of the example what the interpreter makes: the same bytes, or
// an error as well. Otherwise what differs.
std::string CompareLowered(const RandomProgram& drawn, std::shared_ptr<const Program> program);

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_OPERATIONS_RANDOM_PROGRAM_H_
