// Bounds the memory of files that several threads read at a time.
#ifndef SYSTOLE_CORE_RECORD_IMAGES_BYTES_IN_FLIGHT_H_
#define SYSTOLE_CORE_RECORD_IMAGES_BYTES_IN_FLIGHT_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "core/concurrency/mutex.h"

namespace systole {

// Thread-safe.
class BytesInFlight {
 public:
  explicit BytesInFlight(uint64_t most) : most_(most) {}

  // Holds `bytes` until it is destroyed.
  class Hold {
   public:
    // Waits until `bytes` and the bytes of all other holds together are at most `most`. A hold of
    // more than `most` bytes waits until there is no other hold.
    Hold(BytesInFlight& all, uint64_t bytes) : all_(all), bytes_(bytes) {
      MutexLock lock(all_.mu_);
      while (!all_.Fits(bytes_)) all_.freed_.Wait(all_.mu_);
      all_.held_ += bytes_;
    }
    ~Hold() {
      MutexLock lock(all_.mu_);
      all_.held_ -= bytes_;
      all_.freed_.SignalAll();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    BytesInFlight& all_;
    const uint64_t bytes_;
  };

 private:
  bool Fits(uint64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return held_ == 0 || (held_ <= most_ && bytes <= most_ - held_);
  }

  const uint64_t most_;
  Mutex mu_;
  CondVar freed_;
  uint64_t held_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_IMAGES_BYTES_IN_FLIGHT_H_
