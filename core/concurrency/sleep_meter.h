// How long a thread sleeps in a piece of its work: it waits for storage, mostly. A thread that is
// ready to run, and waits for a processor, does not sleep.
//
//   meter.Begin(clock());  ..work..  meter.End(clock())
//
// A piece costs about 1.3 us, or 0.1 us if it takes less than 20 us: such a piece counts as one that
// did not sleep. To tell sleep from waiting for a processor, the kernel is asked, which costs 7 us:
// only in pieces that did not run all the time, and at most every 2 ms. In between, the part that
// was sleep is taken to be the same.
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
  // How long the thread has slept since Begin(). 0 if this kernel does not say (thread_times.h).
  absl::Duration End(absl::Duration now);

 private:
  absl::Duration began_;
  // The processor time that it had used at an earlier moment. Since then it has had this many short
  // pieces, and they took ran_. What it ran between pieces is little.
  absl::Duration cpu_;
  int short_pieces_ = 0;
  absl::Duration ran_;
  // When the kernel was last asked, and for how long the thread had queued by then. Since then, it
  // did not run for off_. What it queues between two pieces counts, too; this is short.
  absl::Duration asked_ = -absl::InfiniteDuration();
  std::optional<absl::Duration> queued_;
  absl::Duration off_;
  double slept_part_ = 0;  // Of the time in which it does not run.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_SLEEP_METER_H_
