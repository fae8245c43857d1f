#include "core/fetch/read_watch.h"

#include <utility>

namespace systole {

bool ReadWatch::IsLate(absl::Duration now) {
  const int64_t bytes = progress_->bytes();
  const double enough = kLeastBytesPerSecond * absl::ToDoubleSeconds(timeout_);
  if (static_cast<double>(bytes - moved_bytes_) >= enough) {
    moved_ = now;
    moved_bytes_ = bytes;
  }
  return now - moved_ >= timeout_ || Taken(now) >= kMostTimeouts * timeout_;
}

bool ReadWatch::HasTimedOut(absl::Duration now) {
  const bool is_late = IsLate(now);
  return std::exchange(was_late_, is_late) && is_late;
}

}  // namespace systole
