// Measures how long the parts of a thread's work take. The code that runs the work measures only a
// sample of it: for a few runs of the work, it makes a LapTimes around the whole run. The functions
// that do the work call NoteLap() after each stretch of work on one part. A lap is the time since
// the previous call of NoteLap(), or since the LapTimes was made:
//
//   LapTimes times(clock);            // On the thread, around the work.
//     .. NoteLap(0); .. NoteLap(2);   // In the work: a lap for part 0; then one for part 2.
//   times.Take()
//
// Nothing but a report may depend on these times.
#ifndef SYSTOLE_CORE_INTERRUPT_LAP_TIMES_H_
#define SYSTOLE_CORE_INTERRUPT_LAP_TIMES_H_

#include <array>
#include <cstddef>
#include <functional>
#include <utility>

#include "absl/time/time.h"

namespace systole {

// While this object lives, the laps of its thread count here and not in the previous LapTimes.
// Single-thread.
class LapTimes {
 public:
  static constexpr int kParts = 32;
  // Time that belongs to no part counts only in Times::all.
  static constexpr int kNoPart = -1;

  struct Times {
    absl::Duration all;
    std::array<absl::Duration, kParts> parts;
  };

  // The first lap begins now. `clock` gives the time since some fixed moment, and is borrowed. Each
  // lap includes one reading of the clock, about 30 ns. So a lap should take a microsecond or more.
  explicit LapTimes(const std::function<absl::Duration()>& clock)
      : clock_(clock), before_(current_), begun_(clock()) {
    current_ = this;
  }
  ~LapTimes() { current_ = before_; }
  LapTimes(const LapTimes&) = delete;
  LapTimes& operator=(const LapTimes&) = delete;

  // Returns the times so far, and begins anew from zero. The time since the last lap belongs to no
  // part.
  Times Take() {
    Lap(kNoPart);
    return std::exchange(times_, {});
  }

 private:
  friend void NoteLap(int part);
  static inline thread_local LapTimes* current_ = nullptr;

  void Lap(int part) {
    const absl::Duration now = clock_();
    const absl::Duration lap = now - std::exchange(begun_, now);
    times_.all += lap;
    if (part >= 0 && part < kParts) times_.parts[static_cast<size_t>(part)] += lap;
  }

  const std::function<absl::Duration()>& clock_;
  LapTimes* const before_;
  absl::Duration begun_;  // When this lap began.
  Times times_;
};

// Says that the time since this thread's last lap was spent on `part`. Outside of a LapTimes this
// does nothing, and costs about a nanosecond.
inline void NoteLap(int part) {
  if (LapTimes::current_ != nullptr) LapTimes::current_->Lap(part);
}

// Calls NoteLap(part) after the argument `result` has been computed, and returns `result`.
template <typename T>
T Lapped(int part, T result) {
  NoteLap(part);
  return result;
}

}  // namespace systole

#endif  // SYSTOLE_CORE_INTERRUPT_LAP_TIMES_H_
