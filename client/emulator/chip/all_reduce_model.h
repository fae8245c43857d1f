// How long the chips of a torus take to sum one buffer, so that every chip has the sum: a
// reduce-scatter along one axis after the other, then all-gathers in the reverse order.
// G bytes; B bytes/s one way on each link; `a` seconds for each hop; axes of n1, n2, .. chips.
//   b = 2B along a ring (it uses both of the axis's links), B along an open line
//   one order  2 * ((n1-1)/n1 * G/b1 + (n2-1)/n2 * (G/n1)/b2 + ..) + 2 * (n1-1 + n2-1 + ..) * a
//   all axes   the buffer is cut into one part for every axis. Part i takes the axes in the order
//              i, i+1, .., wrapping around, and all parts run at once: every link is busy in every
//              phase. A phase ends when its slowest part ends. For two equal axes, N = n * n:
//              2 * (N-1)/N * G/(2b) + 2 * (n1-1 + n2-1) * a
// The 2-D form is from Ying et al. 2018 (arXiv:1811.06992). We extend the rotation to a third axis.
// The sum over a chip's own cores is not included.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_CHIP_ALL_REDUCE_MODEL_H_
#define SYSTOLE_CLIENT_EMULATOR_CHIP_ALL_REDUCE_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace systole::emulator {

enum class AllReduceOrder { kOneOrder, kAllAxes };

struct TorusAxis {
  int64_t chips = 1;  // 1 to 2^20.
  bool ring = true;   // Whether the ends are joined. In small slices of some chips they are not.
};

struct AllReduceShape {
  // One to three axes.
  std::vector<TorusAxis> axes;
  // G: the buffer that each chip holds, bytes.
  double bytes = 0;
  // B: what one link carries one way, bytes/s.
  double link_bytes_per_s = 0;
  // a: what one hop adds, seconds.
  double hop_s = 1e-6;
  AllReduceOrder order = AllReduceOrder::kAllAxes;
};

// Seconds; 0 on one chip. InvalidArgument, naming the field, if a number is out of range or not
// finite.
absl::StatusOr<double> AllReduceSeconds(const AllReduceShape& shape);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_ALL_REDUCE_MODEL_H_
