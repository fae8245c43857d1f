// A program, an example's bytes and the example's key, all drawn from a string of bytes. The files
// of the fuzzer's corpus are such strings. Tests draw many programs from random bytes.
#ifndef SYSTOLE_TESTS_CORE_OPERATIONS_RANDOM_PROGRAM_H_
#define SYSTOLE_TESTS_CORE_OPERATIONS_RANDOM_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/operations/ops/draws.h"
#include "core/operations/program.h"
#include "systole/v1/feed.pb.h"

namespace systole {

struct RandomProgram {
  v1::Output output;
  std::string stored;         // A JPEG, a PNG or raw bytes, undamaged.
  std::vector<float> floats;  // Instead of `stored`, if the feature has floats.
  std::vector<int64_t> int64s;
  ExampleKey example;
};

// Accepts any bytes. Many of the programs are invalid (CompileDrawn() returns null).
RandomProgram DrawProgram(absl::Span<const uint8_t> bytes);

// Returns the program of `drawn`. Returns null if the program is refused, or if the size of its
// output is not known before a record is read (no feed accepts this).
std::shared_ptr<const Program> CompileDrawn(const RandomProgram& drawn);

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_OPERATIONS_RANDOM_PROGRAM_H_
