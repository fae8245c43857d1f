// Compares our parser of tf.train.Example with protobuf's. Both refuse, or both see the same
// features.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/core/example/protobuf_oracle.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(example, const uint8_t* data, size_t size) {
  const std::string difference =
      systole::DifferenceFromProtobuf(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!difference.empty()) {
    std::fprintf(stderr, "differs from protobuf: %s\n", difference.c_str());
    std::abort();
  }
  return 0;
}
