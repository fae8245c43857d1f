// A mutex and a condition variable with thread-safety annotations. They wrap the classes of the
// standard library. Debian's abseil is not built for ThreadSanitizer, so absl::Mutex would need
// suppressions. These classes need none, and clang's -Wthread-safety checks every field that says
// ABSL_GUARDED_BY.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_CONCURRENCY_MUTEX_H_
#define SYSTOLE_CORE_CONCURRENCY_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace systole {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mu_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mu_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

// Holds `mu` from construction to destruction.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : mu_(mu) { mu_.Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mu_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

// Waits are written as a loop over a named predicate: `while (!CanPop()) cv_.Wait(mu_);`. Wait()
// takes no predicate, because clang's analysis does not look into lambdas.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  // Unlocks `mu`, sleeps, and locks again. Wakes when signalled, but may also wake for no reason.
  void Wait(Mutex& mu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // Waits for at most `timeout`. False if the time ran out. InfiniteDuration waits for ever.
  bool WaitFor(Mutex& mu, absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (timeout == absl::InfiniteDuration()) {
      Wait(mu);
      return true;
    }
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    const std::cv_status result = cv_.wait_for(lock, absl::ToChronoMicroseconds(timeout));
    lock.release();
    return result == std::cv_status::no_timeout;
  }
  void Signal() { cv_.notify_one(); }
  void SignalAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_MUTEX_H_
