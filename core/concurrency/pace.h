// Waits until a moment of a monotonic clock, exact to a few microseconds. It sleeps until shortly
// before the moment, and then spins. A sleep alone ends 50 to 100 us after the moment, and on a
// busy machine even later.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_CONCURRENCY_PACE_H_
#define SYSTOLE_CORE_CONCURRENCY_PACE_H_

#include <functional>

#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"

namespace systole {

struct Pacer {
  MonotonicClock now = SteadyClock();
  // Sleeps for about this long; it may be a little longer. Null: the machine's sleep.
  std::function<void(absl::Duration)> sleep;
  // The last stretch before the deadline, spent looking at the clock. A longer stretch allows for
  // later wake-ups, but keeps a processor busy for longer in every wait.
  absl::Duration spin = absl::Microseconds(100);
};

// Waits until `deadline`, or not at all if it has passed. Returns the clock's time afterwards. If
// that is past the deadline, the caller is late by the difference. To keep a rhythm without drift,
// add the period to the previous deadline, not to the returned time.
absl::Duration PaceUntil(absl::Duration deadline, const Pacer& pacer);

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_PACE_H_
