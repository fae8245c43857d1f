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
  // Sleeps for about the given time, perhaps a little longer. Null: the machine's sleep.
  std::function<void(absl::Duration)> sleep;
  // How long before the deadline the sleep ends and the spinning begins. With a larger value a
  // wake-up may come later without harm, but every wait keeps a processor busy for longer.
  absl::Duration spin = absl::Microseconds(100);
};

// Waits until `deadline`, or not at all if it has passed. Returns the clock's time at the end of
// the wait. If this time is past the deadline, the caller is late by the difference. To keep a
// rhythm without drift, add the period to the previous deadline, not to the returned time.
absl::Duration PaceUntil(absl::Duration deadline, const Pacer& pacer);

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_PACE_H_
