// Tells a thread that its work is no longer wanted. The owner of the work raises a flag. Loops that
// may take long, within one image or one transform, look at the flag about once a row. If the flag
// is raised, the loops give up.
//
//   InterruptFlag unwanted;                    // One per piece of work. Any thread may raise it.
//   const InterruptScope scope(unwanted);      // On the working thread, around all of its work.
//     .. if (InterruptRequested()) return InterruptedError();       // Anywhere in the work.
//
// The flag belongs to the thread and is not an argument, because it changes no result that is used.
// A computation either finishes, and then its result depends on its arguments alone, or it is
// interrupted, and its result is dropped.
#ifndef SYSTOLE_CORE_INTERRUPT_INTERRUPT_H_
#define SYSTOLE_CORE_INTERRUPT_INTERRUPT_H_

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "absl/status/status.h"

namespace systole {

// Thread-safe. Once raised, the flag stays raised.
class InterruptFlag {
 public:
  void Raise() { raised_.store(true, std::memory_order_relaxed); }
  bool is_raised() const { return raised_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> raised_ = false;
};

// While the scope lives, its thread looks at `flag` instead of the previous flag. Single-thread.
class InterruptScope {
 public:
  explicit InterruptScope(const InterruptFlag& flag) : before_(heeded_) { heeded_ = &flag; }
  ~InterruptScope() { heeded_ = before_; }
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  friend bool InterruptRequested();
  friend const InterruptFlag* HeededInterruptFlag();
  static inline thread_local const InterruptFlag* heeded_ = nullptr;

  const InterruptFlag* const before_;
};

// Whether this thread should give up. False outside of an InterruptScope. Costs about a nanosecond.
inline bool InterruptRequested() {
  return InterruptScope::heeded_ != nullptr && InterruptScope::heeded_->is_raised();
}

// The flag that this thread looks at; null outside of an InterruptScope. Before this thread sleeps,
// it can give the flag to another thread, which looks at the flag in its place. Valid as long as
// the scope lives.
inline const InterruptFlag* HeededInterruptFlag() { return InterruptScope::heeded_; }

// Returned by code that gives up. No user sees this error, because the owner of the work drops the
// result.
inline absl::Status InterruptedError() {
  return absl::CancelledError("the result is no longer needed");
}

// Divides [0, count) into parts and calls part(begin, end) for each part in order, until
// InterruptRequested(). Each part begins at a multiple of 3. So in an image of 1 or 3 channels,
// each part begins with the first value of a pixel.
template <typename Part>
void InParts(size_t count, const Part& part) {
  constexpr size_t kPart = size_t{3} << 14;  // The slowest transforms take 1 ms for a part.
  for (size_t begin = 0; begin < count && !InterruptRequested(); begin += kPart) {
    part(begin, std::min(count, begin + kPart));
  }
}

}  // namespace systole

#endif  // SYSTOLE_CORE_INTERRUPT_INTERRUPT_H_
