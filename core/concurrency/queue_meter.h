// How much earlier a thread could have begun its next piece of work. During this time the thread
// was ready to run, but other threads had the processors, or the process had used up its share of
// processor time.
//
//   | work |   sleeps   | ready to run | work |
//        End()                       Begin()    returns about the time of "ready to run"
//
// A question to the kernel costs 7 us. So Begin() asks the kernel only if at least 2 ms have passed
// since End(), and otherwise returns 0.
//
// Single-thread: it measures the thread that calls it.
#ifndef SYSTOLE_CORE_CONCURRENCY_QUEUE_METER_H_
#define SYSTOLE_CORE_CONCURRENCY_QUEUE_METER_H_

#include <optional>

#include "absl/time/time.h"

namespace systole {

class QueueMeter {
 public:
  // The thread begins a piece of work at `now`. Returns for how much of the time since End() the
  // thread was ready to run but did not run. Returns 0 before the first piece, and if this kernel
  // does not count times (thread_times.h).
  absl::Duration Begin(absl::Duration now);
  // The thread ends the piece of work at `now`.
  void End(absl::Duration now) { ended_ = now; }

 private:
  std::optional<absl::Duration> ended_;
  // When the kernel was last asked, and for how long the thread had queued by then.
  absl::Duration asked_;
  std::optional<absl::Duration> queued_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_QUEUE_METER_H_
