// How long a thread sleeps during a piece of its work, mostly to wait for storage. A thread that is
// ready to run and waits for a processor does not sleep.
//
//   meter.Begin(clock());  ..work..  meter.End(clock())
//
// To measure a piece costs about 1.3 us. A piece of less than 20 us counts as a piece without
// sleep, and costs only 0.1 us.
//
// While a thread does not run, it sleeps or waits for a processor. Only the kernel can say which,
// and a request to the kernel costs 7 us. So the meter makes a request at most every 2 ms, after a
// piece in which the thread did not run all the time. The answer gives the part of the time off the
// processors that was sleep. Until the next answer, the meter assumes that this part stays the
// same.
//
// Single-thread: it measures the thread that made it.
#ifndef SYSTOLE_CORE_CONCURRENCY_SLEEP_METER_H_
#define SYSTOLE_CORE_CONCURRENCY_SLEEP_METER_H_

#include <optional>

#include "absl/time/time.h"

namespace systole {

class SleepMeter {
 public:
  SleepMeter();

  // The thread begins a piece of work at `now`.
  void Begin(absl::Duration now);
  // How long the thread has slept since Begin(). 0 if this kernel does not count times
  // (thread_times.h).
  absl::Duration End(absl::Duration now);

 private:
  absl::Duration began_;
  // The thread's processor time when Begin() last read this time. Since then the thread has had
  // `short_pieces_` pieces below 20 us, which took `ran_` together. The time that the thread ran
  // between the pieces is neglected, because it is short.
  absl::Duration cpu_;
  int short_pieces_ = 0;
  absl::Duration ran_;
  // The last request to the kernel was at `asked_`. By then the thread had waited for a processor
  // for `queued_` in all (nullopt: the kernel does not count times). In the pieces since then, the
  // thread was off the processors for `off_` in all. The kernel also counts waits for a processor
  // between two pieces, but these are short.
  absl::Duration asked_ = -absl::InfiniteDuration();
  std::optional<absl::Duration> queued_;
  absl::Duration off_;
  double slept_part_ = 0;  // The part of `off_` that was sleep, by the kernel's last answer.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_SLEEP_METER_H_
