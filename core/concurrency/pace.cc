#include "core/concurrency/pace.h"

#include <thread>

namespace systole {
namespace {

// Leaves the core's execution units to its other hardware thread, if there is one.
void Relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

absl::Duration PaceUntil(absl::Duration deadline, const Pacer& pacer) {
  absl::Duration now = pacer.now();
  while (now < deadline - pacer.spin) {
    const absl::Duration sleep = deadline - pacer.spin - now;
    if (pacer.sleep != nullptr) {
      pacer.sleep(sleep);
    } else {
      std::this_thread::sleep_for(absl::ToChronoNanoseconds(sleep));
    }
    now = pacer.now();
  }
  while (now < deadline) {
    Relax();
    now = pacer.now();
  }
  return now;
}

}  // namespace systole
