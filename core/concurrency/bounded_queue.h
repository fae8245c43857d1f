// A first-in first-out queue of bounded length between threads.
//
//   Close()         no more items come. Pop still returns the queued items, and then nullopt.
//   Cancel(status)  queued items are dropped; Push and Pop return `status` from now on.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_CONCURRENCY_BOUNDED_QUEUE_H_
#define SYSTOLE_CORE_CONCURRENCY_BOUNDED_QUEUE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/concurrency/mutex.h"
#include "core/status/check.h"

namespace systole {

template <typename T>
class BoundedQueue {
 public:
  // REQUIRES: capacity > 0.
  explicit BoundedQueue(int64_t capacity) : capacity_(capacity) { SYSTOLE_CHECK(capacity > 0); }

  // Waits for room. FailedPrecondition after Close(); the Cancel() status after Cancel().
  absl::Status Push(T item) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    while (!CanPush()) changed_.Wait(mu_);
    if (!cancelled_.ok()) return cancelled_;
    if (closed_) return absl::FailedPreconditionError("push into a closed queue");
    items_.push_back(std::move(item));
    changed_.SignalAll();
    return absl::OkStatus();
  }

  // Waits for an item. nullopt once closed and drained; the Cancel() status after Cancel().
  absl::StatusOr<std::optional<T>> Pop() ABSL_LOCKS_EXCLUDED(mu_) {
    // Under the lock only the emptied item is destroyed, not its content.
    MutexLock lock(mu_);
    while (!CanPop()) changed_.Wait(mu_);
    if (!cancelled_.ok()) return cancelled_;
    if (items_.empty()) return std::optional<T>();
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    changed_.SignalAll();
    return item;
  }

  void Close() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    closed_ = true;
    changed_.SignalAll();
  }

  // Only the first Cancel() has an effect. REQUIRES: !status.ok().
  void Cancel(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_) {
    SYSTOLE_CHECK(!status.ok());
    std::deque<T> dropped;  // Destroyed after the lock is released.
    {
      MutexLock lock(mu_);
      if (!cancelled_.ok()) return;
      cancelled_ = std::move(status);
      dropped.swap(items_);
      changed_.SignalAll();
    }
  }

  int64_t size() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return static_cast<int64_t>(items_.size());
  }

 private:
  bool CanPush() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return closed_ || !cancelled_.ok() || static_cast<int64_t>(items_.size()) < capacity_;
  }
  bool CanPop() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return closed_ || !cancelled_.ok() || !items_.empty();
  }

  const int64_t capacity_;  // Constant after construction.
  mutable Mutex mu_;
  CondVar changed_;
  std::deque<T> items_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status cancelled_ ABSL_GUARDED_BY(mu_);  // OK until cancelled.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_BOUNDED_QUEUE_H_
