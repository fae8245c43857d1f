// How long the chips of a torus take to add up one buffer, until every chip has the sum. The chips
// do a reduce-scatter along one axis after the other, then all-gathers in the reverse order.
// The buffer has G bytes. A link carries B bytes/s one way. A hop takes `a` seconds. The axes have
// n1, n2, .. chips.
//   b = 2B along a ring (both links of a chip on this axis are used), B along an open line
//   one order  2 * ((n1-1)/n1 * G/b1 + (n2-1)/n2 * (G/n1)/b2 + ..) + 2 * (n1-1 + n2-1 + ..) * a
//   all axes   the buffer is cut into one part for every axis. Part i takes the axes in the order
//              i, i+1, .., last, first, .., i-1. In a phase each part works on one axis, all parts
//              at once, so every link is busy. A phase ends when its slowest part ends. For two
//              equal axes, N = n * n:
//              2 * (N-1)/N * G/(2b) + 2 * (n1-1 + n2-1) * a
// The formula for two axes is from Ying et al. 2018 (arXiv:1811.06992). For a third axis we rotate
// the order of the axes in the same way. The sum over a chip's own cores is not included.
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
  // Whether the axis's two ends are joined. In small slices of some chips the ends are not joined.
  bool ring = true;
};

struct AllReduceShape {
  // One to three axes.
  std::vector<TorusAxis> axes;
  // G: the size of the buffer that each chip holds, in bytes.
  double bytes = 0;
  // B: what one link carries one way, in bytes/s.
  double link_bytes_per_s = 0;
  // a: the time that one hop adds, in seconds.
  double hop_s = 1e-6;
  AllReduceOrder order = AllReduceOrder::kAllAxes;
};

// The time in seconds; 0 for one chip. InvalidArgument if a number is out of range or not finite.
// The message names the field.
absl::StatusOr<double> AllReduceSeconds(const AllReduceShape& shape);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_ALL_REDUCE_MODEL_H_
