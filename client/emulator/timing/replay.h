// Replay mode: record once when a feed's slices arrive, then compute offline how busy it would have
// kept any chip. The same file gives the same numbers every time.
//
// What a recording at full drain speed says: its reader never made the feed wait, so these are the
// arrivals of a feed with endless room ahead of the cores. A slower chip's feed could only run
// ahead by its client's window and queue; a hiccup that the recording hides behind steps made long
// before may stall the real one. So replayed AU is an upper bound, close for a steady feed. Pacing
// (paced_run.h) measures the real thing for one chip.
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

// `pop`, noting on the way when each slice arrived: nanoseconds since this call, in `arrivals.ns`;
// what came before counts as there from the beginning. `arrivals.first_step` becomes that of the
// first step; one that not all cores have got is dropped. `clock` is the one that
// SliceArrival.arrived_at is by. The result borrows `arrivals`, and its cores must be asked in
// order. ResourceExhausted beyond kMaxArrivalTimes.
PopArrival Recording(PopArrival pop, const MonotonicClock& clock, Arrivals& arrivals);

// InvalidArgument if an option is out of range. `options.num_cores` is the recording's. `on_step`
// may be null.
absl::StatusOr<TimingBooks> Replay(const Arrivals& arrivals, InfeedOptions options,
                                   const std::function<void(const StepRecord&)>& on_step = nullptr);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_REPLAY_H_
