// The memory of look-ups of records in columns (DatasetColumns::RecordsThatMeet()). All look-ups of
// a server share kBytes. A look-up may hang for as long as its storage hangs, and keeps its share
// all that time. So a look-up takes at most a quarter of the memory that is left. The other three
// quarters stay for later look-ups.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_DATASET_LOOK_UP_MEMORY_H_
#define SYSTOLE_CORE_DATASET_LOOK_UP_MEMORY_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "core/concurrency/mutex.h"

namespace systole {

class LookUpMemory {
 public:
  // All shares together are smaller than kBytes, for any number of shares.
  static constexpr int64_t kBytes = int64_t{256} << 20;

  class Share {
   public:
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    int64_t bytes() const { return bytes_; }

   private:
    friend class LookUpMemory;
    Share(LookUpMemory& memory, int64_t bytes) : memory_(memory), bytes_(bytes) {}

    LookUpMemory& memory_;
    const int64_t bytes_;
  };

  // Takes a quarter of the memory that is left. The memory comes back when the share is destroyed.
  // The first share has 64 MiB, the eighth has 8.5 MiB.
  Share Take() ABSL_LOCKS_EXCLUDED(mu_);
  int64_t left_bytes() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable Mutex mu_;
  int64_t left_ ABSL_GUARDED_BY(mu_) = kBytes;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_LOOK_UP_MEMORY_H_
