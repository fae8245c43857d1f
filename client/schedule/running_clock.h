// A process's own time: the caller's time without the pauses in which the process was stopped or
// the machine slept. If the caller wakes up much later than planned, there was a pause. Deadlines
// in a process's own time are put off by this pause.
//
// Reads no clock. Thread-compatible.
#ifndef SYSTOLE_CLIENT_SCHEDULE_RUNNING_CLOCK_H_
#define SYSTOLE_CLIENT_SCHEDULE_RUNNING_CLOCK_H_

#include "absl/time/time.h"

namespace systole {

class RunningClock {
 public:
  // Takes the caller's present time, which never goes back. Returns the running time.
  absl::Duration See(absl::Duration now) {
    if (wake_at_ < now - kLatestWakeUp) {
      skipped_ += now - seen_at_;
      wake_at_ = now;
    }
    seen_at_ = now;
    return now - skipped_;
  }

  // Sets when the caller is to wake up: at the running time `due`.
  void WakeAt(absl::Duration due) { wake_at_ = due + skipped_; }
  // When the caller wakes up, in the caller's time.
  absl::Duration wake_at() const { return wake_at_; }
  // The running time at `now`. Does not look for a pause, as See() does.
  absl::Duration At(absl::Duration now) const { return now - skipped_; }

 private:
  // A wake-up that is later than this shows a pause. Load alone does not delay it so much.
  static constexpr absl::Duration kLatestWakeUp = absl::Seconds(2);

  absl::Duration skipped_ = absl::ZeroDuration();
  absl::Duration seen_at_ = absl::ZeroDuration();
  absl::Duration wake_at_ = absl::InfiniteDuration();
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SCHEDULE_RUNNING_CLOCK_H_
