// Decides what the threads of a StepEngine do next and what its streams get: which slices are
// begun, in what memory, and whose examples are made first. It has no thread, no lock and no clock.
//
//   Add(stream) -> Take() -> task: a few examples of a slice -> Finish() -> .. -> Next() -> slice
//                  |                                                                  |
//                  the least advanced stream (FairClock)         GiveBack(memory) <---+
//
// A slice is begun when the first task is taken for it, so there is no queue. The scheduler keeps
// an entry for each stream and one for each slice that is begun and not delivered. Every call costs
// O(streams), plus the entries that it removes.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_PIPELINE_STEP_SCHEDULER_H_
#define SYSTOLE_CORE_PIPELINE_STEP_SCHEDULER_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/memory/aligned_buffer.h"
#include "core/memory/buffer_pool.h"
#include "core/pipeline/fair_clock.h"
#include "core/pipeline/feed_plan.h"
#include "core/pipeline/pending_slice.h"
#include "core/pipeline/step_range.h"

namespace systole {

// Bytes that the budget is charged with for each slice beside its own. About what is kept around
// one: its entries here, its shared pointers, the allocator's headers.
inline constexpr int64_t kSliceOverheadBytes = 1024;

struct StepSchedulerOptions {
  // Threads that ask for work.
  int threads = 1;
  int64_t memory_budget_bytes = int64_t{1} << 30;
  int max_sealed_slices = std::numeric_limits<int>::max();
};

// A slice that is made.
struct MadeSlice {
  int64_t step = 0;
  int core = 0;
  AlignedBuffer buffer;
};

// What a consumer gets: a slice, nullopt at the end, or the error that ended the stream.
using Delivery = absl::StatusOr<std::optional<MadeSlice>>;
using DeliveryWaiter = absl::AnyInvocable<void(Delivery)>;

// One consumer's stream. Only the scheduler touches the fields that change, so a lock that guards
// the scheduler guards them too.
class ScheduledStream {
 public:
  // `num_slices` comes from CountSlices().
  ScheduledStream(std::shared_ptr<const FeedPlan> plan, const StepRange& range,
                  const StreamMemory& memory, int64_t num_slices);

  const std::shared_ptr<const FeedPlan>& plan() const { return plan_; }

 private:
  friend class StepScheduler;

  // Constant.
  const std::shared_ptr<const FeedPlan> plan_;
  const StepRange range_;
  const StreamMemory memory_;
  const int64_t num_slices_;
  const int64_t cost_bytes_;  // What a slice costs the budget.
  const TaskSize task_size_;

  int64_t next_to_begin_ = 0;  // The number of that slice, of num_slices_.
  // Slices begun and not delivered, in order. Only the last one may have examples to hand out.
  std::deque<std::shared_ptr<PendingSlice>> pending_;
  int64_t held_slices_ = 0;  // Slices begun and not dropped by the consumer.
  FairClock::Account account_;
  bool can_work_ = false;  // Whether it had work at the last look.
  // What was found wrong with the slice next_to_begin_. It is delivered behind all of pending_.
  absl::Status failed_;
  absl::Status ended_;     // What the consumer was told; OK while the stream lives.
  DeliveryWaiter waiter_;  // Set while the consumer waits.
};

class StepScheduler {
 public:
  using StreamPtr = std::shared_ptr<ScheduledStream>;

  explicit StepScheduler(const StepSchedulerOptions& options);

  // What to tell a consumer that waited. Call the waiter without a lock: it may call anything.
  struct Answer {
    DeliveryWaiter waiter;  // Null: no consumer waited.
    Delivery delivery = std::optional<MadeSlice>();
  };

  // Examples to be made, with all that a thread needs to make them.
  class Task {
   public:
    const std::shared_ptr<const FeedPlan>& plan() const { return stream_->plan(); }
    int64_t step() const { return slice_->step(); }
    int core() const { return slice_->core(); }
    const ExampleRange& examples() const { return examples_; }
    // The slice's memory. No other task touches the places of these examples.
    uint8_t* data() const { return slice_->data(); }

   private:
    friend class StepScheduler;
    Task(StreamPtr stream, std::shared_ptr<PendingSlice> slice, const ExampleRange& examples,
         double charged)
        : stream_(std::move(stream)),
          slice_(std::move(slice)),
          examples_(examples),
          charged_(charged) {}

    StreamPtr stream_;
    std::shared_ptr<PendingSlice> slice_;
    ExampleRange examples_;
    double charged_;
  };

  struct Work {
    std::optional<Task> task;
    Answer answer;      // For a stream for which the system had no memory.
    bool more = false;  // Another thread would find work too.

    bool empty() const { return !task.has_value() && answer.waiter == nullptr; }
  };

  // ResourceExhausted if one of its slices is larger than the whole budget.
  absl::Status Add(const StreamPtr& stream);

  // What the stream that goes first needs next. Begins a slice if it needs one.
  Work Take();

  // `task` is done and ended with `status`. A thread was busy with it for `cost` (in the unit of
  // all other costs, nanoseconds).
  Answer Finish(const Task& task, double cost, absl::Status status);

  // What the consumer gets now; nullopt if it has to wait. In that case call Wait().
  std::optional<Delivery> Next(ScheduledStream& stream);
  // Calls `waiter` once there is something to deliver. REQUIRES: the stream has no waiter yet.
  void Wait(ScheduledStream& stream, DeliveryWaiter waiter);

  // The consumer has dropped a slice; its memory comes back.
  Answer GiveBack(ScheduledStream& stream, AlignedBuffer buffer);

  // Ends the stream. Slices that are being made are thrown away when their tasks are done.
  Answer Cancel(const StreamPtr& stream);

  // A stream that is not cancelled; null if there is none.
  StreamPtr AnyStream() const { return streams_.empty() ? nullptr : streams_.front(); }

  int64_t num_streams() const { return static_cast<int64_t>(streams_.size()); }
  int64_t examples_made() const { return examples_made_; }
  const BufferPool& buffers() const { return buffers_; }

 private:
  // Whether the stream may begin another slice, if there is memory for it.
  bool MayBegin(const ScheduledStream& stream) const;
  // Whether the stream has begun a slice that has examples to hand out.
  static bool HasMore(const ScheduledStream& stream);
  // What one stream may hold of the budget, in bytes.
  int64_t ShareBytes() const;
  // What the stream holds of the budget, in bytes.
  static int64_t HeldBytes(const ScheduledStream& stream);
  bool HasRoom(const ScheduledStream& stream) const;
  // Whether the consumer has to drop a slice before it gets another one.
  static bool WindowIsFull(const ScheduledStream& stream);

  // The stream that goes first, null if there is no work, and how many streams could go.
  struct Choice {
    StreamPtr stream;
    int64_t wanting = 0;
  };
  Choice Choose();
  // Begins the stream's next slice. False if the system has no memory: the stream has failed.
  bool Begin(ScheduledStream& stream);
  // Takes memory back for `starved`, which holds nothing. True if some came back at once.
  bool TakeBackLookAhead(const ScheduledStream& starved);
  // Throws away the last pending slice. It may be begun again.
  void TakeBackLast(ScheduledStream& stream);
  // Gives the slice's memory back, now or when the last task that writes there is done.
  void Drop(PendingSlice& slice, int64_t cost_bytes);
  // What a waiting consumer is told now, if anything.
  Answer AnswerOf(ScheduledStream& stream);

  const int threads_;
  BufferPool buffers_;
  FairClock clock_;
  std::vector<StreamPtr> streams_;
  int64_t returning_bytes_ = 0;  // Of slices that are dropped while a task writes to them.
  int64_t examples_made_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PIPELINE_STEP_SCHEDULER_H_
