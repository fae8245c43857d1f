// One core's slice of one step: a block of memory laid out as the plan's SliceLayout says.
//
// Thread-compatible; immutable once a stream has delivered it, so any number of threads may read.
#ifndef SYSTOLE_CORE_ENGINE_CORE_SLICE_H_
#define SYSTOLE_CORE_ENGINE_CORE_SLICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/batch/slice_layout.h"
#include "core/batch/stage_times.h"
#include "core/memory/aligned_buffer.h"
#include "core/plan/feed_plan.h"

namespace systole {

class CoreSlice {
 public:
  // Borrows `buffer`. The destructor calls `release`, which ends the loan.
  CoreSlice(std::shared_ptr<const FeedPlan> plan, int64_t step, int core, const StageTimes& stages,
            const AlignedBuffer& buffer, std::function<void()> release)
      : plan_(std::move(plan)),
        step_(step),
        core_(core),
        stages_(stages),
        buffer_(buffer),
        release_(std::move(release)) {}
  ~CoreSlice() { release_(); }
  CoreSlice(const CoreSlice&) = delete;
  CoreSlice& operator=(const CoreSlice&) = delete;

  int64_t step() const { return step_; }
  int core() const { return core_; }
  // How long each stage of this slice took, as the stream that delivered the slice saw it.
  const StageTimes& stages() const { return stages_; }
  const SliceLayout& layout() const { return plan_->layout(); }
  const uint8_t* data() const { return buffer_.data(); }
  // The slice's memory, for another process to map; null if this memory is private.
  const std::shared_ptr<const SealedMemory>& sealed() const { return buffer_.sealed(); }

 private:
  const std::shared_ptr<const FeedPlan> plan_;
  const int64_t step_;
  const int core_;
  const StageTimes stages_;
  const AlignedBuffer& buffer_;
  const std::function<void()> release_;
};

// Shared, because the network layer refers to a slice's memory until the last byte is sent.
using SlicePtr = std::shared_ptr<const CoreSlice>;

// A stream's next slice; nullopt at the end of the stream; or the error that ended the stream.
using SliceResult = absl::StatusOr<std::optional<SlicePtr>>;
using SliceDone = absl::AnyInvocable<void(SliceResult)>;

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_CORE_SLICE_H_
