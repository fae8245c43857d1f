// Replay mode. A recording says when a feed's slices arrived. Replay computes from these times,
// offline, how busy the feed would have kept any chip. The same file gives the same numbers every
// time.
//
// If the recorder takes slices as fast as they come, the feed never waits for the recorder. So a
// step may arrive long before a real chip needs it. With a real chip, the feed can be ahead only by
// the steps that fit into the client's window and queue. So steps that came early in the recording
// may hide an interruption that would stall the real chip, and the replayed AU (utilisation.h) is
// an upper bound. The bound is close for a steady feed. Pacing (paced_run.h) measures the real AU
// for one chip.
//
// Single-thread.
#ifndef SYSTOLE_CLIENT_EMULATOR_TIMING_REPLAY_H_
#define SYSTOLE_CLIENT_EMULATOR_TIMING_REPLAY_H_

#include <functional>

#include "absl/status/statusor.h"
#include "client/emulator/timing/arrivals.h"
#include "client/emulator/timing/infeed_clock.h"
#include "client/emulator/timing/slice_arrival.h"
#include "client/emulator/timing/timing_books.h"
#include "core/concurrency/monotonic_clock.h"

namespace systole::emulator {

// Returns a function that calls `pop` and appends each slice's time of arrival to `arrivals.ns`, in
// nanoseconds since the call of Recording(). Slices that arrived before this call have the time 0.
// The function also sets `arrivals.first_step`, and drops a last step that only some cores got.
// `clock` is the clock of SliceArrival.arrived_at. The function borrows `arrivals`. For each step,
// call the function once for each core, in the order of the cores. It returns ResourceExhausted if
// there are more than kMaxArrivalTimes times.
PopArrival Recording(PopArrival pop, const MonotonicClock& clock, Arrivals& arrivals);

// InvalidArgument if an option is out of range. `options.num_cores` is ignored, because the
// recording has its own number of cores. `on_step` may be null.
absl::StatusOr<TimingBooks> Replay(const Arrivals& arrivals, InfeedOptions options,
                                   const std::function<void(const StepRecord&)>& on_step = nullptr);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_REPLAY_H_
