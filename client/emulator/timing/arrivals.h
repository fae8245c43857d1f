// A recording of when a feed's slices arrived. arrivals_file.h writes and reads it as a file.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_TIMING_ARRIVALS_H_
#define SYSTOLE_CLIENT_EMULATOR_TIMING_ARRIVALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/emulator/timing/feed_origin.h"
#include "core/tensor/dtype.h"

namespace systole::emulator {

// One tensor of a core's slice.
struct ArrivalTensor {
  std::string name;  // As in the feed's spec. 1 to 128 bytes.
  DType dtype = DType::kUint8;
  int batch_axis = 0;
  std::vector<int64_t> shape;  // Batch included. The tensor has at most 2^40 bytes.

  int64_t per_core_batch() const { return shape[static_cast<size_t>(batch_axis)]; }
  // The shape of one example.
  std::vector<int64_t> example() const;
  friend bool operator==(const ArrivalTensor&, const ArrivalTensor&) = default;
};

enum class RecordedBy { kDrain, kPaced };

// A recording has at most this many times of arrival, one for each step and core. They take half a
// gigabyte of memory, and are enough for eight million steps of eight cores.
inline constexpr int64_t kMaxArrivalTimes = int64_t{1} << 26;

struct Arrivals {
  RecordedBy recorded_by = RecordedBy::kDrain;
  FeedOrigin origin;
  std::vector<ArrivalTensor> tensors;  // 1 to kMaxSliceTensors; all have the same batch.
  int64_t first_step = 0;
  int num_cores = 0;
  // When each slice arrived, in nanoseconds since the recording began: [step][core]. At most
  // kMaxArrivalTimes numbers.
  std::vector<int64_t> ns;

  int64_t steps() const { return static_cast<int64_t>(ns.size()) / num_cores; }
  int64_t per_core_batch() const { return tensors[0].per_core_batch(); }
  friend bool operator==(const Arrivals&, const Arrivals&) = default;
};

// Checks that `arrivals` can be a recording. Called before a recording is written and after a
// recording is read.
//   InvalidArgument  `arrivals` cannot be a recording. The message names the tensor or the field.
absl::Status CheckArrivals(const Arrivals& arrivals);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_ARRIVALS_H_
