// How busy threads were lately: the part of the threads that worked, averaged over time. A moment
// that is kBusyMemory older than another one counts 1/e as much.
//
// Reads no clock. Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_BUSY_SHARE_H_
#define SYSTOLE_CORE_ENGINE_BUSY_SHARE_H_

#include "absl/time/time.h"
#include "core/numeric/math.h"

namespace systole {

// A shorter time would let one step or one pause change the average much. With a longer time, the
// average would show too late that clients come and go.
inline constexpr absl::Duration kBusyMemory = absl::Seconds(10);

class BusyShare {
 public:
  // From `now` on, this part of the threads works: 0 for none, 1 for all. `now` never goes back.
  void Set(double part, absl::Duration now) {
    average_ = At(now);
    part_ = part;
    since_ = now;
  }

  // The average at `now`.
  double At(absl::Duration now) const {
    const double age = absl::FDivDuration(now - since_, kBusyMemory);
    return part_ + (average_ - part_) * static_cast<double>(Exp(static_cast<float>(-age)));
  }

 private:
  double average_ = 0;  // The average at since_.
  double part_ = 0;     // The part of the threads that works from since_ on.
  absl::Duration since_ = absl::ZeroDuration();
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_BUSY_SHARE_H_
