// A process's own time: the caller's time without that in which the process was not running,
// because it was stopped or the machine slept. It is told apart by a wake-up that comes much later
// than it was due, so deadlines in this time move on by such a pause.
//
// Reads no clock. Thread-compatible.
#ifndef SYSTOLE_CLIENT_SCHEDULE_RUNNING_CLOCK_H_
#define SYSTOLE_CLIENT_SCHEDULE_RUNNING_CLOCK_H_

#include "absl/time/time.h"

namespace systole {

class RunningClock {
 public:
  // It is `now` in the caller's time, which never goes back. Returns the running time.
  absl::Duration See(absl::Duration now) {
    if (wake_at_ < now - kLatestWakeUp) {
      skipped_ += now - seen_at_;
      wake_at_ = now;
    }
    seen_at_ = now;
    return now - skipped_;
  }

  // The caller wakes up when the running time is `due`.
  void WakeAt(absl::Duration due) { wake_at_ = due + skipped_; }
  // The same in the caller's time.
  absl::Duration wake_at() const { return wake_at_; }
  // The running time at `now`, without having seen it.
  absl::Duration At(absl::Duration now) const { return now - skipped_; }

 private:
  // A wake-up that comes later than this after its time was not held up by load.
  static constexpr absl::Duration kLatestWakeUp = absl::Seconds(2);

  absl::Duration skipped_ = absl::ZeroDuration();
  absl::Duration seen_at_ = absl::ZeroDuration();
  absl::Duration wake_at_ = absl::InfiniteDuration();
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SCHEDULE_RUNNING_CLOCK_H_
