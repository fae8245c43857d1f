// When a step's slices arrived. Pacing and recording take these times from a feed. Here a feed is a
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
  int64_t step = 0;           // The step's number in the feed.
  absl::Duration arrived_at;  // Time by a monotonic clock.
};

// Waits for core `core`'s next slice, takes it and drops it. nullopt at the end of the feed.
using PopArrival = std::function<absl::StatusOr<std::optional<SliceArrival>>(int core)>;

struct StepArrival {
  int64_t step = 0;
  std::vector<absl::Duration> arrived_at;  // Per core.
};

// Takes one step's slices, one for each core. Returns nullopt if core 0 gets no slice: the feed has
// ended. An error of the feed is passed on unchanged.
//   FailedPrecondition  core 0 gets a slice, but another core gets none, or one of another step.
absl::StatusOr<std::optional<StepArrival>> PopStep(const PopArrival& pop, int num_cores);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_SLICE_ARRIVAL_H_
