// A clock that never goes back. The clock is a value that is passed along, so that a test can pass
// its own clock.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_CONCURRENCY_MONOTONIC_CLOCK_H_
#define SYSTOLE_CORE_CONCURRENCY_MONOTONIC_CLOCK_H_

#include <functional>

#include "absl/time/time.h"

namespace systole {

// Time since some fixed moment.
using MonotonicClock = std::function<absl::Duration()>;

// The machine's monotonic clock.
MonotonicClock SteadyClock();

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_MONOTONIC_CLOCK_H_
