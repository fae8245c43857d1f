// How long a thread sleeps during a piece of its work, mostly to wait for storage. A thread that is
// ready to run and waits for a processor does not sleep.
//
//   meter.Begin(clock());  ..work..  meter.End(clock())
//
// Measuring a piece costs about 1.3 us. A piece of less than 20 us counts as a piece without sleep,
// and measuring it costs only 0.1 us. Only the kernel can distinguish sleep from waiting for a
// processor, and asking the kernel costs 7 us. So the kernel is asked only after a piece in which
// the thread did not run all the time, and at most every 2 ms. Only a part of the time in which the
// thread does not run is sleep. The kernel's answer says how large this part is. Until the next
// answer, the meter uses the part that the last answer gave.
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

  // A piece of work begins at `now`.
  void Begin(absl::Duration now);
  // How long the thread has slept since Begin(). 0 if this kernel does not count times
  // (thread_times.h).
  absl::Duration End(absl::Duration now);

 private:
  absl::Duration began_;
  // cpu_ is the thread's processor time when Begin() last read it. Since then the thread has had
  // short_pieces_ short pieces, which took ran_ together. Between the pieces the thread ran only
  // little.
  absl::Duration cpu_;
  int short_pieces_ = 0;
  absl::Duration ran_;
  // The kernel was last asked at asked_, and the thread had queued for queued_ in all by then. In
  // the pieces since then, the thread did not run for off_ in all. The kernel also counts queueing
  // between two pieces, but that time is short.
  absl::Duration asked_ = -absl::InfiniteDuration();
  std::optional<absl::Duration> queued_;
  absl::Duration off_;
  double slept_part_ = 0;  // The part of off_ that was sleep, by the kernel's last answer.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_SLEEP_METER_H_
