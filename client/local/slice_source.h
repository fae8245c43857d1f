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

  // Waits for at most `timeout` until Take() can return at once. Returns whether Take() can return
  // at once.
  bool WaitFor(absl::Duration timeout);
  // A slice, and when the engine delivered it.
  struct Delivered {
    SlicePtr slice;
    absl::Duration at;
  };
  // Waits for the next step's slices, and returns them in the order of cores. After an error of the
  // stream every call returns that error. REQUIRES: the stream has another step.
  absl::StatusOr<std::vector<Delivered>> Take();
  void Cancel();
  // How many complete steps wait. A step does not count once WaitFor() or Take() has begun to
  // collect its slices.
  int64_t CountReady() const;

 private:
  struct Inbox;

  // Requests the next slice from the stream. Does nothing if the answer to the last request was not
  // taken yet. REQUIRES: not IsReady().
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
