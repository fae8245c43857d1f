// How long the chips of an X x Y torus take to sum one buffer, so that every chip has the sum:
// reduce-scatter along one dimension, then along the other, and the way back as all-gathers.
// G bytes; B bytes/s one way on each link; a seconds a hop.
//   b = 2B with wraparound (a ring uses both of a dimension's ports), B without
//   one order       2 * ((X-1)/X * G/b + (Y-1)/Y * (G/X)/b) + 2 * (X-1 + Y-1) * a
//   both dimensions half of the buffer goes X then Y, the other half Y then X, at once: each half
//                   takes its two phases with G/2, and a phase ends when the slower half does.
//                   For X = Y, N = X * Y: 2 * (N-1)/N * G/(2b) + 2 * (X-1 + Y-1) * a
// The sum over a chip's own cores is not in it.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_CHIP_ALL_REDUCE_MODEL_H_
#define SYSTOLE_CLIENT_EMULATOR_CHIP_ALL_REDUCE_MODEL_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace systole::emulator {

enum class AllReduceOrder { kOneOrder, kBothDimensions };

struct AllReduceShape {
  // Chips along each dimension, 1 to 2^20.
  int64_t x = 1;
  int64_t y = 1;
  // G: the buffer that each chip holds, bytes.
  double bytes = 0;
  // B: what one link carries one way, bytes/s.
  double link_bytes_per_s = 0;
  // a: what one hop adds, seconds.
  double hop_s = 1e-6;
  // Ends are joined. Small slices of some chips are not.
  bool wraparound = true;
  AllReduceOrder order = AllReduceOrder::kBothDimensions;
};

// Seconds; 0 on one chip. InvalidArgument, naming the field, if a number is out of range or not
// finite.
absl::StatusOr<double> AllReduceSeconds(const AllReduceShape& shape);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_ALL_REDUCE_MODEL_H_
