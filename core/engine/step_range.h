// Which slices of a feed a stream delivers, and where they lie.
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

// What a stream delivers: cores core_begin .. core_end - 1 of the steps first_step,
// first_step + stride, .., `count` of them or up to the feed's end.
struct StepRange {
  int64_t first_step = 0;
  int64_t count = 1;
  int64_t stride = 1;
  int core_begin = 0;
  int core_end = 1;

  int num_cores() const { return core_end - core_begin; }
};

// How many slices of this feed the range holds; 0 if it begins at the feed's end.
//   InvalidArgument  a range that is empty, negative, beyond the cores or beyond the feed's end;
//                    names the field.
absl::StatusOr<int64_t> CountSlices(const FeedPlan& plan, const StepRange& range);

// Where a stream's slices lie, and how many of them its consumer may hold.
struct StreamMemory {
  BufferKind kind = BufferKind::kPrivate;
  // A consumer that holds slices of this many bytes, and two at least, gets no other until it drops
  // one. This is for a consumer that nothing else slows down: what it was given cannot be taken
  // back for others.
  int64_t window_bytes = std::numeric_limits<int64_t>::max();
  // Most bytes that are made ahead, each slice with kSliceOverheadBytes; the stream's share of the
  // budget bounds them, too. One slice is always allowed.
  int64_t ahead_bytes = std::numeric_limits<int64_t>::max();
  // Whether a slice leaves the budget when the consumer gets it. For a consumer in this process
  // that may keep as many as it likes; what is made ahead for it is bounded all the same. While its
  // consumer does not wait, all of that is look-ahead, which gives way to a stream of this kind
  // whose consumer waits for its next slice and has no room for it.
  bool gives_away = false;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_STEP_RANGE_H_
