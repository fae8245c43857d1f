#include "core/concurrency/monotonic_clock.h"

#include <chrono>

namespace systole {

MonotonicClock SteadyClock() {
  return [] { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); };
}

}  // namespace systole
