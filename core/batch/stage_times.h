// How long the stages of one slice took, in the process that made it. The stages follow one
// another, and the last one ends when the slice is handed on. So the receiver can count the stages
// back from the moment at which the slice arrives, and does not need the maker's clock:
//
//   | read | make | wait |   the slice arrives
//
// Times are not part of a slice. They do not change its bytes or its digest.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CORE_BATCH_STAGE_TIMES_H_
#define SYSTOLE_CORE_BATCH_STAGE_TIMES_H_

#include "absl/time/time.h"

namespace systole {

// Longer times are cut down to this, so that sums of them cannot overflow.
inline constexpr absl::Duration kMaxStageTime = absl::Hours(1);

struct StageTimes {
  // The time in which all work left on the slice waited for storage.
  absl::Duration read = absl::ZeroDuration();
  // The time in which the slice's examples were made, or waited for a thread.
  absl::Duration make = absl::ZeroDuration();
  // The time in which the slice was done, and its consumer had not taken it yet.
  absl::Duration wait = absl::ZeroDuration();
  // The tensor whose output costs most to make. -1: not known.
  int costliest = -1;
  // The operation that takes most of that output's time, as its number among the output's
  // transforms. -1: not known.
  int operation = -1;

  friend bool operator==(const StageTimes&, const StageTimes&) = default;
};

// `time`, cut to [0, kMaxStageTime].
inline absl::Duration BoundedStageTime(absl::Duration time) {
  if (time < absl::ZeroDuration()) return absl::ZeroDuration();
  return time > kMaxStageTime ? kMaxStageTime : time;
}

}  // namespace systole

#endif  // SYSTOLE_CORE_BATCH_STAGE_TIMES_H_
