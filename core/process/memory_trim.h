// Decides when a process gives unused memory of its malloc back to the kernel.
//
// Thread-compatible. MemoryTrim reads no clock and does not trim. The caller keeps the time, and
// trims (allocator.h).
#ifndef SYSTOLE_CORE_PROCESS_MEMORY_TRIM_H_
#define SYSTOLE_CORE_PROCESS_MEMORY_TRIM_H_

#include <cstdint>

namespace systole {

// A trim is due if more memory is resident than is allowed. The caller calls IsDue() ten times a
// second. While a trim runs, every thread that needs memory waits. If a trim gained little, the
// resident memory is in use. So each such trim doubles the wait before the next one.
class MemoryTrim {
 public:
  // A trim that gives back less than this gained little.
  static constexpr int64_t kGainBytes = int64_t{8} << 20;
  // The longest wait, in calls of IsDue(): about a minute.
  static constexpr int kLongestWait = 640;

  // Whether to trim now. Call it about every tenth of a second.
  bool IsDue(int64_t resident_bytes, int64_t allowed_bytes);

  // Call this after a trim that was due, with the bytes that are resident then.
  void Done(int64_t resident_bytes);

 private:
  int64_t resident_before_ = 0;  // The resident memory at the last trim that was due.
  int wait_ = 1;                 // Calls from one trim to the next.
  int calls_left_ = 0;           // Calls until the next trim may be due.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PROCESS_MEMORY_TRIM_H_
