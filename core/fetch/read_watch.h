// Distinguishes a read that hangs from a read that is only slow, by the bytes that have come.
#ifndef SYSTOLE_CORE_FETCH_READ_WATCH_H_
#define SYSTOLE_CORE_FETCH_READ_WATCH_H_

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "core/interrupt/read_progress.h"

namespace systole {

// Thread-compatible. But the read may count its bytes in progress() on any thread.
class ReadWatch {
 public:
  // A read that brings fewer bytes a second than this, on average over `timeout`, counts as
  // hanging. core/http ends such transfers, too.
  static constexpr double kLeastBytesPerSecond = 1024;
  // After this many times `timeout`, a read has timed out even if it brings enough bytes.
  static constexpr int kMostTimeouts = 5;

  // Watches a read that begins at `now`.
  ReadWatch(absl::Duration timeout, absl::Duration now)
      : timeout_(timeout), began_(now), moved_(now) {}

  // Returns true if the read is late at `now` and was also late at the previous call. A single
  // call is not enough: after a stop of the whole process, every read is late until it goes on.
  bool HasTimedOut(absl::Duration now);

  absl::Duration Taken(absl::Duration now) const { return now - began_; }

  // Where the read counts its bytes.
  const std::shared_ptr<ReadProgress>& progress() const { return progress_; }

 private:
  bool IsLate(absl::Duration now);

  absl::Duration timeout_;
  absl::Duration began_;
  absl::Duration moved_;     // The time of the last look that found enough new bytes.
  int64_t moved_bytes_ = 0;  // How many bytes had come at moved_.
  bool was_late_ = false;    // Whether the read was late at the last look.
  std::shared_ptr<ReadProgress> progress_ = std::make_shared<ReadProgress>();
};

}  // namespace systole

#endif  // SYSTOLE_CORE_FETCH_READ_WATCH_H_
