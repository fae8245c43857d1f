// Which slices of a feed a stream delivers, and in what memory.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CORE_ENGINE_STEP_RANGE_H_
#define SYSTOLE_CORE_ENGINE_STEP_RANGE_H_

#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "core/memory/buffer_pool.h"
#include "core/plan/feed_plan.h"

namespace systole {

// The slices that a stream delivers. Its steps are first_step, first_step + stride, ..: `count`
// steps, or fewer if the feed ends before. Of each step, the stream delivers the slices of the
// cores core_begin .. core_end - 1.
struct StepRange {
  int64_t first_step = 0;
  int64_t count = 1;
  int64_t stride = 1;
  int core_begin = 0;
  int core_end = 1;

  int num_cores() const { return core_end - core_begin; }
};

// How many slices of this feed the range holds; 0 if it begins at the feed's end.
//   InvalidArgument  the range is empty, negative, beyond the cores or beyond the feed's end. The
//                    message names the field.
absl::StatusOr<int64_t> CountSlices(const FeedPlan& plan, const StepRange& range);

// The memory of a stream's slices, and how many of them its consumer may hold.
struct StreamMemory {
  BufferKind kind = BufferKind::kPrivate;
  // The most bytes of slices that a consumer may hold; two slices are always allowed. At this bound
  // the consumer gets no other slice until it drops a slice. Set the bound for a consumer that has
  // no other limit, because slices that a consumer holds cannot be taken back for other consumers.
  int64_t window_bytes = std::numeric_limits<int64_t>::max();
  // The most bytes that are made ahead, counting kSliceOverheadBytes for each slice. The stream's
  // share of the budget bounds these bytes, too. One slice is always allowed.
  int64_t ahead_bytes = std::numeric_limits<int64_t>::max();
  // Whether a slice leaves the budget when the consumer gets it. True is for a consumer in this
  // process, which may keep as many slices as it likes.
  //   Slices that are made ahead still count in the budget. While the stream's consumer waits for
  // no slice, the stream may have to give up these slices. This happens if the consumer of another
  // stream with gives_away waits, and that stream holds no slice and has no room for one.
  bool gives_away = false;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_STEP_RANGE_H_
