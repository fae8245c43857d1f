// The time of day. It may jump. So use it only to compare with dates that other programs wrote, and
// never to order or measure events. The clock is a value that is passed along, so that a test can
// pass its own clock.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_CONCURRENCY_WALL_CLOCK_H_
#define SYSTOLE_CORE_CONCURRENCY_WALL_CLOCK_H_

#include <functional>

#include "absl/time/time.h"

namespace systole {

using WallClock = std::function<absl::Time()>;

// The machine's time of day.
WallClock SystemWallClock();

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_WALL_CLOCK_H_
