// The arrival times of a step's slices, which pacing and recording take from a feed. The feed is a
// function, so this code needs no queues and no network.
//
// Single-thread.
#ifndef SYSTOLE_CLIENT_EMULATOR_TIMING_SLICE_ARRIVAL_H_
#define SYSTOLE_CLIENT_EMULATOR_TIMING_SLICE_ARRIVAL_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace systole::emulator {

struct SliceArrival {
  int64_t step = 0;           // Of the feed.
  absl::Duration arrived_at;  // By a monotonic clock.
};

// Takes core `core`'s next slice and drops it; waits. nullopt at the end of the feed.
using PopArrival = std::function<absl::StatusOr<std::optional<SliceArrival>>(int core)>;

struct StepArrival {
  int64_t step = 0;
  std::vector<absl::Duration> arrived_at;  // Per core.
};

// Takes one step's slices, one for each core; nullopt at the end of the feed. An error of the feed
// is passed on unchanged.
//   FailedPrecondition  cores are given different steps, or only some get one.
absl::StatusOr<std::optional<StepArrival>> PopStep(const PopArrival& pop, int num_cores);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_SLICE_ARRIVAL_H_
