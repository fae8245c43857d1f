// How busy threads were lately: the part of them that worked, averaged over the past with weights
// that fall to 1/e within kBusyMemory.
//
// Reads no clock. Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_BUSY_SHARE_H_
#define SYSTOLE_CORE_ENGINE_BUSY_SHARE_H_

#include "absl/time/time.h"
#include "core/numeric/math.h"

namespace systole {

// Long enough that one step or one pause says nothing, and short enough that clients that come and
// go soon show.
inline constexpr absl::Duration kBusyMemory = absl::Seconds(10);

class BusyShare {
 public:
  // From `now` on this part of the threads works, 0 to 1. Time never goes back.
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
  double average_ = 0;  // At since_.
  double part_ = 0;     // Since then.
  absl::Duration since_ = absl::ZeroDuration();
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_BUSY_SHARE_H_
