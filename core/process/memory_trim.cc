#include "core/process/memory_trim.h"

#include <algorithm>

namespace systole {

bool MemoryTrim::IsDue(int64_t resident_bytes, int64_t allowed_bytes) {
  if (resident_bytes <= allowed_bytes) {
    // Less memory is resident than is allowed, so the earlier trims say nothing about the next one.
    *this = MemoryTrim();
    return false;
  }
  if (calls_left_ > 0 && --calls_left_ > 0) return false;
  resident_before_ = resident_bytes;
  return true;
}

void MemoryTrim::Done(int64_t resident_bytes) {
  const bool gained = resident_before_ - resident_bytes >= kGainBytes;
  wait_ = gained ? 1 : std::min(2 * wait_, kLongestWait);
  calls_left_ = wait_;
}

}  // namespace systole
