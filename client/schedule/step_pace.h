// The average time that a lane takes for a step, and the time after which a lane is late.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_SCHEDULE_STEP_PACE_H_
#define SYSTOLE_CLIENT_SCHEDULE_STEP_PACE_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace systole {

class StepPace {
 public:
  // A step has arrived. `took`: how long the step's lane took for it.
  void Arrived(absl::Duration took) {
    moves_ = 0;
    pace_ = pace_.has_value() ? *pace_ + (took - *pace_) / kPaceSteps : took;
  }
  // A lane was moved because it was late.
  void Moved() { ++moves_; }

  // How long a lane may take for a step before it is late. Infinite before the first step.
  absl::Duration late_after() const {
    if (!pace_.has_value()) return absl::InfiniteDuration();
    return (kLateBy + 2 * *pace_) * (int64_t{1} << std::min(moves_, kMostDoublings));
  }

 private:
  // The last step makes up 1 / kPaceSteps of the average.
  static constexpr int kPaceSteps = 8;
  // A lane is late when its step takes this much longer than two average steps.
  static constexpr absl::Duration kLateBy = absl::Seconds(1);
  // Each move of a lane since the last step arrived doubles the time after which a lane is late, at
  // most this many times. So a system that is slow as a whole gets enough time to finish a step.
  static constexpr int kMostDoublings = 6;

  std::optional<absl::Duration> pace_;
  int moves_ = 0;  // Moves since the last step arrived.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SCHEDULE_STEP_PACE_H_
