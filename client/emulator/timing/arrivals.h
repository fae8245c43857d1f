// A recording of when a feed's slices arrived, and its file:
//
//   systole-arrivals 1
//   recorded drain                   drain: by a reader that never waits; paced: by one that does
//   tensor image bfloat16 0 128 224 224 3  one core's slice, a line for each tensor: name, type,
//   tensor label int64 0 128               which dimension counts the examples, dimensions
//   first_step 0
//   cores 2
//   steps 3
//   1520000 1521000                  a line for each step: nanoseconds since the recording began,
//   2940000 2941000                  one number for each core; no core's numbers fall
//   4400000 4402000
//   end
//
// Words are separated by one space, lines end with \n, numbers are decimal; nothing else is
// accepted.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_TIMING_ARRIVALS_H_
#define SYSTOLE_CLIENT_EMULATOR_TIMING_ARRIVALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/memory/dtype.h"

namespace systole::emulator {

// One tensor of a core's slice.
struct ArrivalTensor {
  std::string name;  // The feed spec's, 1 to 128 bytes without spaces or control characters.
  DType dtype = DType::kUint8;
  int batch_axis = 0;
  std::vector<int64_t> shape;  // Batch included. The tensor has at most 2^40 bytes.

  int64_t per_core_batch() const { return shape[static_cast<size_t>(batch_axis)]; }
  // The shape of one example.
  std::vector<int64_t> example() const;
  friend bool operator==(const ArrivalTensor&, const ArrivalTensor&) = default;
};

enum class RecordedBy { kDrain, kPaced };

struct Arrivals {
  RecordedBy recorded_by = RecordedBy::kDrain;
  std::vector<ArrivalTensor> tensors;  // At least one; all of one batch.
  int64_t first_step = 0;
  int num_cores = 0;
  std::vector<int64_t> ns;  // [step][core]

  int64_t steps() const { return static_cast<int64_t>(ns.size()) / num_cores; }
  int64_t per_core_batch() const { return tensors[0].per_core_batch(); }
  friend bool operator==(const Arrivals&, const Arrivals&) = default;
};

// REQUIRES: what the fields' comments say.
std::string ArrivalsText(const Arrivals& arrivals);

// Takes memory of a few times the text at most, whatever it says.
//   InvalidArgument  "<source>:<line>: <what is wrong>".
absl::StatusOr<Arrivals> ParseArrivals(absl::string_view text, absl::string_view source);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_ARRIVALS_H_
