// How long the stages of one slice took at the end that made it. The stages follow one another and
// end when the slice is handed on. So whoever gets the slice can lay them back in time from that
// moment, without the other end's clock:
//
//   | read | make | wait |   the slice arrives
//
// Times are no part of a slice: they change neither its bytes nor its digest.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CORE_BATCH_STAGE_TIMES_H_
#define SYSTOLE_CORE_BATCH_STAGE_TIMES_H_

#include "absl/time/time.h"

namespace systole {

// Longer times are cut down to this, so that sums of them cannot overflow.
inline constexpr absl::Duration kMaxStageTime = absl::Hours(1);

struct StageTimes {
  // All that was left to do waited for storage.
  absl::Duration read = absl::ZeroDuration();
  // Its examples were made, or waited for a thread.
  absl::Duration make = absl::ZeroDuration();
  // It was done, and its consumer did not take it.
  absl::Duration wait = absl::ZeroDuration();
  // The tensor whose output costs most to make. -1: not known.
  int costliest = -1;
  // The operation that takes most of this output's time: its number among the output's transforms.
  // -1: not known.
  int operation = -1;

  friend bool operator==(const StageTimes&, const StageTimes&) = default;
};

// `time`, within [0, kMaxStageTime].
inline absl::Duration BoundedStageTime(absl::Duration time) {
  if (time < absl::ZeroDuration()) return absl::ZeroDuration();
  return time > kMaxStageTime ? kMaxStageTime : time;
}

}  // namespace systole

#endif  // SYSTOLE_CORE_BATCH_STAGE_TIMES_H_
