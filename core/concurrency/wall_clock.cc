#include "core/concurrency/wall_clock.h"

#include "absl/time/clock.h"

namespace systole {

WallClock SystemWallClock() {
  return [] { return absl::Now(); };
}

}  // namespace systole
