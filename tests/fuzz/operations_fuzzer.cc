// Draws a program and an image from the bytes. The lowered program must give the same bytes as the
// interpreter, which runs the reference code of each operation, one operation after the other.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "tests/core/operations/compared_programs.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(operations, const uint8_t* data, size_t size) {
  const systole::RandomProgram drawn = systole::DrawProgram(absl::MakeConstSpan(data, size));
  const std::shared_ptr<const systole::Program> program = systole::CompileDrawn(drawn);
  if (program == nullptr) return 0;
  const std::string difference = systole::CompareLowered(drawn, program);
  if (difference.empty()) return 0;
  std::fprintf(stderr, "operations: %s\n%s", difference.c_str(),
               drawn.output.DebugString().c_str());
  std::abort();
}
