// For how long a thread that comes to its next piece of work could have come to it earlier: it was
// ready to run, but others had the processors, or its process had used up its share of them.
//
//   | work |   sleeps   | ready to run | work |
//        End()                       Begin()    returns about the time between the bars
//
// To ask the kernel costs 7 us. It is asked only if at least 2 ms have passed since the last piece.
//
// Single-thread: it measures the thread that calls it.
#ifndef SYSTOLE_CORE_CONCURRENCY_QUEUE_METER_H_
#define SYSTOLE_CORE_CONCURRENCY_QUEUE_METER_H_

#include <optional>

#include "absl/time/time.h"

namespace systole {

class QueueMeter {
 public:
  // The thread begins a piece of work at `now`. Returns how long of the time since End() it was
  // ready to run and did not run. 0 before the first piece, and if this kernel does not say
  // (thread_times.h).
  absl::Duration Begin(absl::Duration now);
  // The piece is done.
  void End(absl::Duration now) { ended_ = now; }

 private:
  std::optional<absl::Duration> ended_;
  // When the kernel was last asked, and for how long the thread had queued by then.
  absl::Duration asked_;
  std::optional<absl::Duration> queued_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_QUEUE_METER_H_
