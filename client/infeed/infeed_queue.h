// The queue in front of one accelerator core. Every slice in the queue has the time of its arrival.
//
//   Close(status)   no more steps come. Pop() still returns the queued steps, and after them the
//                   end of the feed (OK) or the error.
//   Cancel(status)  queued steps are dropped; Push and Pop return `status` from now on.
//
// Thread-safe. One thread pushes, and one thread pops.
#ifndef SYSTOLE_CLIENT_INFEED_INFEED_QUEUE_H_
#define SYSTOLE_CLIENT_INFEED_INFEED_QUEUE_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/batch/slice_layout.h"
#include "core/concurrency/bounded_queue.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/tensor/tensor.h"

namespace systole {

// One core's slice of one step. Copies share the memory, which lives as long as any copy.
// Thread-compatible.
struct CoreStep {
  int64_t step = 0;
  // Absolute number of the core.
  int core = 0;
  std::shared_ptr<const SliceLayout> layout;
  // layout->slice_bytes() bytes on a 64-byte boundary.
  std::shared_ptr<const uint8_t> slice;
  // When the slice arrived, by the queue's clock. InfeedQueue::Push() sets it before it waits for
  // room, so a full queue makes no slice late. One thread may pop the slices of all cores. So only
  // `arrived_at` shows how late a slice was, and not the time that Pop() takes.
  absl::Duration arrived_at = absl::ZeroDuration();

  // Tensor `index` of layout->tensors(). Valid as long as any copy of this CoreStep.
  TensorView Tensor(int index) const { return layout->View(index, slice.get()); }
  // The tensor called `name`, or nullopt.
  std::optional<TensorView> Find(absl::string_view name) const;
};

class InfeedQueue {
 public:
  // At most `capacity` steps wait in the queue. More steps hide longer interruptions and cost more
  // memory. REQUIRES: capacity > 0. `clock` says when slices arrive.
  explicit InfeedQueue(int64_t capacity, MonotonicClock clock = SteadyClock());

  // Waits for room. FailedPrecondition after Close(); the status of Cancel() after Cancel().
  absl::Status Push(CoreStep step);

  // Waits for a step. nullopt: the feed has ended. After an error every call returns that error.
  absl::StatusOr<std::optional<CoreStep>> Pop();

  // Only the first Close() counts.
  void Close(absl::Status status = absl::OkStatus()) ABSL_LOCKS_EXCLUDED(mu_);
  // REQUIRES: !status.ok().
  void Cancel(absl::Status status);

  // The number of steps that wait.
  int64_t size() const { return queue_.size(); }

 private:
  const MonotonicClock clock_;
  BoundedQueue<CoreStep> queue_;
  mutable Mutex mu_;
  // What Pop() returns once the queue is closed and drained.
  absl::Status end_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_INFEED_INFEED_QUEUE_H_
