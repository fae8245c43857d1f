// Buffers for steps, all of one size, kept for reuse. A fresh 40 MB buffer costs ten thousand page
// faults, and pinning a buffer costs more.
//
// Thread-safe. The shelf lives until the client and all buffers of the shelf are gone.
#ifndef SYSTOLE_CLIENT_STEP_STEP_SHELF_H_
#define SYSTOLE_CLIENT_STEP_STEP_SHELF_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "client/step/step.h"
#include "core/concurrency/mutex.h"

namespace systole {

class StepShelf : public std::enable_shared_from_this<StepShelf> {
 public:
  // Buffers of `bytes` bytes. At most `keep` unused ones are kept.
  static std::shared_ptr<StepShelf> Create(int64_t bytes, int64_t keep, StepMemory memory);
  ~StepShelf();
  StepShelf(const StepShelf&) = delete;
  StepShelf& operator=(const StepShelf&) = delete;

  // A buffer with unspecified contents, on a 64-byte boundary.
  //   ResourceExhausted  there is not that much memory.
  //   InvalidArgument    the caller's memory is not on a 64-byte boundary.
  absl::StatusOr<StepBuffer> Acquire() ABSL_LOCKS_EXCLUDED(mu_);

  // From now on every buffer that comes back is freed at once.
  void StopKeeping() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  StepShelf(int64_t bytes, int64_t keep, StepMemory memory);
  void Return(uint8_t* buffer) ABSL_LOCKS_EXCLUDED(mu_);
  void Free(uint8_t* buffer) const;

  const int64_t bytes_;
  const StepMemory memory_;
  Mutex mu_;
  int64_t keep_ ABSL_GUARDED_BY(mu_);
  std::vector<uint8_t*> unused_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_STEP_STEP_SHELF_H_
