// A run of a slice's examples, which the scheduler gives to a thread: to a thread that makes the
// examples, or to the thread that reads their records ahead.
//
// Thread-compatible value type, but unwanted() may be used by any thread.
#ifndef SYSTOLE_CORE_ENGINE_SLICE_TASK_H_
#define SYSTOLE_CORE_ENGINE_SLICE_TASK_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "core/cache/value_cache.h"
#include "core/engine/pending_slice.h"
#include "core/engine/scheduled_stream.h"
#include "core/engine/shared_slice.h"
#include "core/interrupt/interrupt.h"
#include "core/plan/feed_plan.h"

namespace systole {

// A run of examples, with everything that a thread needs to make them or to read their records.
class SliceTask {
 public:
  // Only the scheduler makes tasks. `charged` is what FairClock::Account::Take() returned.
  SliceTask(std::shared_ptr<ScheduledStream> stream, SharedSlicePtr slice, ExampleRun run,
            double charged)
      : stream_(std::move(stream)),
        slice_(std::move(slice)),
        run_(std::move(run)),
        charged_(charged) {}

  const std::shared_ptr<const FeedPlan>& plan() const { return stream_->plan(); }
  // Null: there is no cache.
  ValueCache* cache() const { return stream_->cache(); }
  int64_t step() const { return slice_->step(); }
  int core() const { return slice_->core(); }
  const ExampleRange& examples() const { return run_.examples; }
  // The task's examples, and how much of the work on them earlier tasks have done.
  const ExampleRun& run() const { return run_; }
  // Raised once no stream wants the slice any more.
  const InterruptFlag& unwanted() const { return slice_->unwanted(); }
  // The bytes of the budget that the task's slice takes.
  int64_t cost_bytes() const { return slice_->cost_bytes(); }
  // The slice's memory. No other task touches the places of this task's examples.
  uint8_t* data() const { return slice_->data(); }

  // For the scheduler: the stream that had the turn, and the slice.
  ScheduledStream& stream() const { return *stream_; }
  SharedSlice& slice() const { return *slice_; }
  double charged() const { return charged_; }

 private:
  std::shared_ptr<ScheduledStream> stream_;
  SharedSlicePtr slice_;
  ExampleRun run_;
  double charged_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_SLICE_TASK_H_
