// The slices of an engine's stream, a step at a time, for a consumer that waits with a time limit.
//
// Thread-compatible, except Cancel() and CountReady(), which any thread may call.
#ifndef SYSTOLE_CLIENT_LOCAL_SLICE_SOURCE_H_
#define SYSTOLE_CLIENT_LOCAL_SLICE_SOURCE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/engine/step_engine.h"

namespace systole {

class SliceSource {
 public:
  // `stream` has `slices_per_step` slices a step.
  SliceSource(std::unique_ptr<StepStream> stream, int slices_per_step);
  ~SliceSource();

  // Waits until Take() can return at once, for at most `timeout`. Returns whether Take() can.
  bool WaitFor(absl::Duration timeout);
  // A slice, and when the engine delivered it.
  struct Delivered {
    SlicePtr slice;
    absl::Duration at;
  };
  // Returns the next step's slices, in the order of cores. Waits for them. After an error of the
  // stream every call returns that error. REQUIRES: the stream has another step.
  absl::StatusOr<std::vector<Delivered>> Take();
  void Cancel();
  // How many complete steps wait. A step that Take() has begun to put together does not count.
  int64_t CountReady() const;

 private:
  struct Inbox;

  // Requests the next slice from the stream. Does nothing if a request is under way, or if its
  // answer was not taken yet. REQUIRES: not IsReady().
  void Ask();
  bool IsReady() const;

  const MonotonicClock clock_ = SteadyClock();
  const size_t slices_per_step_;
  // Shared, because a thread of the engine may still use the inbox when this object is gone.
  const std::shared_ptr<Inbox> inbox_;
  const std::unique_ptr<StepStream> stream_;
  std::vector<Delivered> slices_;
  absl::Status error_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LOCAL_SLICE_SOURCE_H_
