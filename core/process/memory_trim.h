// Decides when a process gives unused memory of its malloc back to the kernel.
//
// Thread-compatible. MemoryTrim reads no clock and does not trim. The caller keeps the time, and
// trims (allocator.h).
#ifndef SYSTOLE_CORE_PROCESS_MEMORY_TRIM_H_
#define SYSTOLE_CORE_PROCESS_MEMORY_TRIM_H_

#include <cstdint>

namespace systole {

// A trim is due if more memory is resident than is allowed, and the wait after the last trim is
// over. A trim that gains little shows that the resident memory is in use. Each such trim doubles
// the wait before the next trim, because every thread that needs memory stops while a trim runs.
class MemoryTrim {
 public:
  // A trim that gives back fewer bytes than this gains little.
  static constexpr int64_t kGainBytes = int64_t{8} << 20;
  // The longest wait, in calls of IsDue(): about a minute.
  static constexpr int kLongestWait = 640;

  // Whether to trim now. Call it about every tenth of a second.
  bool IsDue(int64_t resident_bytes, int64_t allowed_bytes);

  // Call Done() after each trim that was due, with the bytes that are resident after the trim.
  void Done(int64_t resident_bytes);

 private:
  int64_t resident_before_ = 0;  // The resident memory at the last trim that was due.
  int wait_ = 1;                 // Calls from one trim to the next.
  int calls_left_ = 0;           // Calls until the next trim may be due.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PROCESS_MEMORY_TRIM_H_
