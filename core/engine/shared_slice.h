// A slice that several streams may have. Counts these streams, and lists the streams that get an
// answer when the slice is done.
//
// Thread-compatible, but any thread may call unwanted().
#ifndef SYSTOLE_CORE_ENGINE_SHARED_SLICE_H_
#define SYSTOLE_CORE_ENGINE_SHARED_SLICE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/engine/pending_slice.h"
#include "core/engine/slice_budget.h"
#include "core/engine/slice_times.h"
#include "core/memory/aligned_buffer.h"
#include "core/memory/buffer_pool.h"
#include "core/plan/feed_plan.h"

namespace systole {

class ScheduledStream;

class SharedSlice : public PendingSlice {
 public:
  // Plan, step, core and kind of memory: slices with one key have the same bytes.
  using Key = std::tuple<const FeedPlan*, int64_t, int, BufferKind>;

  // `records` and `reads_ahead` as in PendingSlice. `now`: when the slice is begun (SliceTimes).
  SharedSlice(std::shared_ptr<const FeedPlan> plan, BufferKind kind, int64_t step, int core,
              int64_t records, bool reads_ahead, AlignedBuffer buffer,
              absl::Duration now = absl::ZeroDuration())
      : PendingSlice(step, core, plan->layout().per_core_batch(), records, reads_ahead,
                     std::move(buffer)),
        plan_(std::move(plan)),
        kind_(kind),
        times_(now) {}

  const std::shared_ptr<const FeedPlan>& plan() const { return plan_; }
  BufferKind kind() const { return kind_; }
  Key key() const { return {plan_.get(), step(), core(), kind_}; }
  // The bytes of the budget that the slice takes.
  int64_t cost_bytes() const { return plan_->layout().slice_bytes() + kSliceOverheadBytes; }

  SliceTimes& times() { return times_; }

  // The stream has the slice from now on. A stream that joins while the slice is made is among
  // makers().
  void Join(ScheduledStream& stream) {
    ++holders_;
    if (!is_done()) makers_.push_back(&stream);
  }
  // The stream no longer has the slice.
  void Leave(ScheduledStream& stream) {
    std::erase(makers_, &stream);
    --holders_;
  }
  // How many streams have the slice.
  int holders() const { return holders_; }
  // The streams that get an answer when the slice is done.
  absl::Span<ScheduledStream* const> makers() const { return makers_; }
  // Returns makers() and clears the list.
  std::vector<ScheduledStream*> TakeMakers() { return std::exchange(makers_, {}); }

 private:
  // The key has the plan's address. Holding the plan prevents another plan at the same address.
  const std::shared_ptr<const FeedPlan> plan_;
  const BufferKind kind_;
  SliceTimes times_;
  int holders_ = 0;
  std::vector<ScheduledStream*> makers_;
};

// Shared by the slice's streams, its consumers, the tasks that make the slice, and the shelf
// (SliceShelf).
using SharedSlicePtr = std::shared_ptr<SharedSlice>;

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_SHARED_SLICE_H_
