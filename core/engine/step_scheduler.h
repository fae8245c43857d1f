// Decides what the threads of a StepEngine do next and what its streams get: which slices are
// begun, in what memory, and whose examples are made first. It has no thread, no lock and no clock.
//
//   Add(stream) -> Take() -> task: a few examples of a slice -> Finish() -> .. -> Next() -> slice
//                  ^    ^                         |                                   |
//                  |    +-- what is left of it <--+ Return()     GiveBack(memory) <---+
//                  the least advanced stream of the least advanced peer (FairClock)
//
// A slice is begun when the first task is taken for it, so there is no queue. The scheduler keeps
// an entry for each stream and one for each slice that is begun and not dropped. Every call costs
// O(streams), plus the entries that it removes.
//
// Streams of one plan share slices. One that comes to a slice that another has begun joins it,
// whether it is done or not. A slice that all have dropped is kept for streams that are still to
// come to it, in memory that nobody asks for: a quarter of the budget at most.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_STEP_SCHEDULER_H_
#define SYSTOLE_CORE_ENGINE_STEP_SCHEDULER_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cache/value_cache.h"
#include "core/engine/fair_clock.h"
#include "core/engine/pending_slice.h"
#include "core/engine/step_range.h"
#include "core/interrupt/interrupt.h"
#include "core/memory/aligned_buffer.h"
#include "core/memory/buffer_pool.h"
#include "core/plan/feed_plan.h"

namespace systole {

// Bytes that the budget is charged with for each slice beside its own. About what is kept around
// one: its entries here, its shared pointers, the allocator's headers.
inline constexpr int64_t kSliceOverheadBytes = 1024;

struct StepSchedulerOptions {
  // Threads that ask for work.
  int threads = 1;
  int64_t memory_budget_bytes = int64_t{1} << 30;
  int max_sealed_slices = std::numeric_limits<int>::max();
  // Whether streams of one plan share slices.
  bool share_slices = false;
  // What a thread works at before it gives back what is left, in the unit of costs.
  double turn = std::numeric_limits<double>::infinity();
};

class ScheduledStream;

// A slice, and the streams that have it: one, or those that share it. Only the scheduler touches
// what it adds to PendingSlice.
class SharedSlice : public PendingSlice {
 public:
  // `records` as in PendingSlice.
  SharedSlice(std::shared_ptr<const FeedPlan> plan, BufferKind kind, int64_t step, int core,
              int64_t records, AlignedBuffer buffer)
      : PendingSlice(step, core, plan->layout().per_core_batch(), records, std::move(buffer)),
        plan_(std::move(plan)),
        kind_(kind) {}

 private:
  friend class StepScheduler;
  using Kept = std::list<std::shared_ptr<SharedSlice>>;
  // Plan, step, core, and in which memory.
  using Key = std::tuple<const FeedPlan*, int64_t, int, BufferKind>;

  Key key() const { return {plan_.get(), step(), core(), kind_}; }
  int64_t cost_bytes() const { return plan_->layout().slice_bytes() + kSliceOverheadBytes; }

  // Held, so that no other plan can come to stand at its address, which is in the key.
  const std::shared_ptr<const FeedPlan> plan_;
  const BufferKind kind_;
  int holders_ = 0;  // Streams that have begun or joined it and not dropped it.
  // Of these, the ones in whose pending_ it was put while it was being made.
  std::vector<ScheduledStream*> makers_;
  std::optional<Kept::iterator> kept_;  // Its place there, if nobody holds it.
};

// What a consumer gets: a slice that is done, nullopt at the end, or the error that ended the
// stream.
using Delivery = absl::StatusOr<std::optional<std::shared_ptr<SharedSlice>>>;
using DeliveryWaiter = absl::AnyInvocable<void(Delivery)>;

// One consumer's stream. Only the scheduler touches the fields that change, so a lock that guards
// the scheduler guards them too.
class ScheduledStream {
 public:
  // `num_slices` comes from CountSlices(). `peer` is who asks: peers share threads and memory
  // evenly, and each peer's streams its part. `cache` is where its outputs keep what they ask for.
  ScheduledStream(std::shared_ptr<const FeedPlan> plan, const StepRange& range,
                  const StreamMemory& memory, int64_t num_slices, std::string peer = "",
                  std::shared_ptr<ValueCache> cache = nullptr);

  const std::shared_ptr<const FeedPlan>& plan() const { return plan_; }
  const StreamMemory& memory() const { return memory_; }

 private:
  friend class StepScheduler;

  // Step and core of a slice by its number, 0 to num_slices_ - 1.
  std::pair<int64_t, int> PlaceOf(int64_t number) const;
  // Whether the stream is still to begin the slice of this step and core.
  bool WillComeTo(int64_t step, int core) const;

  // Constant.
  const std::shared_ptr<const FeedPlan> plan_;
  const StepRange range_;
  const StreamMemory memory_;
  const int64_t num_slices_;
  const std::string peer_;
  const std::shared_ptr<ValueCache> cache_;
  const int64_t cost_bytes_;  // What a slice costs the budget.
  const TaskSize task_size_;

  int64_t next_to_begin_ = 0;  // The number of that slice, of num_slices_.
  // Slices begun and not delivered, in order. Only the last one may have examples that nobody has
  // taken yet; others may have some that were given back.
  std::deque<std::shared_ptr<SharedSlice>> pending_;
  int64_t returned_ = 0;        // Runs that were given back and wait in them.
  int64_t held_slices_ = 0;     // Slices begun and not dropped by the consumer.
  FairClock::Account account_;  // Add() opens it.
  bool can_work_ = false;       // Whether it has work, as far as memory goes.
  bool blocked_ = false;        // Nothing is taken for it for now.
  bool gave_way_ = false;  // Its last slice went to another: begins none until it is asked for.
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
    Delivery delivery = std::optional<std::shared_ptr<SharedSlice>>();
  };
  // Of streams that wait for one slice.
  using Answers = std::vector<Answer>;

  // Examples to be made, with all that a thread needs to make them.
  class Task {
   public:
    const std::shared_ptr<const FeedPlan>& plan() const { return stream_->plan(); }
    // Null: nothing is kept.
    ValueCache* cache() const { return stream_->cache_.get(); }
    int64_t step() const { return slice_->step(); }
    int core() const { return slice_->core(); }
    const ExampleRange& examples() const { return run_.examples; }
    // The same, and how far an earlier task came with them.
    const ExampleRun& run() const { return run_; }
    // Raised once nobody wants the slice any more.
    const InterruptFlag& unwanted() const { return slice_->unwanted(); }
    // What its slice costs the budget.
    int64_t cost_bytes() const { return slice_->cost_bytes(); }
    // The slice's memory. No other task touches the places of these examples.
    uint8_t* data() const { return slice_->data(); }

   private:
    friend class StepScheduler;
    Task(StreamPtr stream, std::shared_ptr<SharedSlice> slice, ExampleRun run)
        : stream_(std::move(stream)), slice_(std::move(slice)), run_(std::move(run)) {}

    // What is left to do of it, in the units of its stream's costs.
    int64_t units() const { return std::max<int64_t>(1, run_.examples.size() - run_.done); }

    StreamPtr stream_;
    std::shared_ptr<SharedSlice> slice_;
    ExampleRun run_;
    double charged_ = 0;
  };

  struct Work {
    std::optional<Task> task;
    Answer answer;      // For a stream for which the system had no memory.
    bool more = false;  // Another thread would find work too.

    bool empty() const { return !task.has_value() && answer.waiter == nullptr; }
  };

  // ResourceExhausted if one of its slices is larger than the whole budget.
  absl::Status Add(const StreamPtr& stream);

  // What the stream that goes first needs next. Begins a slice if it needs one. `beside`: only of
  // peers that have no overdue task.
  Work Take(bool beside = false);

  // A task of the stream's peer is overdue, or no longer.
  void CountOverdue(const Task& task, bool overdue);

  // `task` is done; `run` is its run with the error, if there was one. A thread was busy with it
  // for `cost` (in the unit of all other costs, nanoseconds).
  Answers Finish(const Task& task, const ExampleRun& run, double cost);

  // The thread ends its turn: `run` says how far it came, and the rest is for any thread that asks
  // when it is the stream's turn again.
  Answers Return(const Task& task, ExampleRun run, double cost);

  // `task` is under way and may never be finished: the streams that have its slice fail with
  // `status` behind the slices before it. The slice's memory stays charged, and nobody gets it,
  // until Finish() is called for the task after all.
  Answers Abandon(const Task& task, const absl::Status& status);

  // Asks `blocked` about the plan of each stream. Nothing is taken for the streams for which it has
  // an answer, until the next call. If the answer is an error, the stream fails with it, behind the
  // slices that are done.
  using Blocked = absl::FunctionRef<std::optional<absl::Status>(const FeedPlan& plan)>;
  Answers SetBlocked(Blocked blocked);

  // So many threads ask for work from now on.
  void SetThreads(int threads) { threads_ = threads; }

  // What the consumer gets now; nullopt if it has to wait. In that case call Wait().
  std::optional<Delivery> Next(ScheduledStream& stream);
  // Calls `waiter` once there is something to deliver. True: there may be work now that Take() had
  // not before. REQUIRES: the stream has no waiter yet.
  bool Wait(ScheduledStream& stream, DeliveryWaiter waiter);

  // The consumer has dropped a slice; its memory comes back.
  Answer GiveBack(ScheduledStream& stream, const std::shared_ptr<SharedSlice>& slice);
  // The same of a slice that was given away (StreamMemory).
  void TakeBack(SharedSlice& slice) { buffers_.TakeBack(slice.TakeBuffer()); }

  // Ends the stream. Slices that are being made are thrown away when their tasks are done.
  Answer Cancel(const StreamPtr& stream);

  // A stream that is not cancelled; null if there is none.
  StreamPtr AnyStream() const { return streams_.empty() ? nullptr : streams_.front(); }

  int64_t num_streams() const { return static_cast<int64_t>(streams_.size()); }
  int64_t examples_made() const { return examples_made_; }
  int64_t slices_shared() const { return slices_shared_; }
  const BufferPool& buffers() const { return buffers_; }

 private:
  // `task` has ended: what follows if that was the last one of its slice.
  Answers Settle(const Task& task);
  // Whether the stream may begin another slice, if there is memory for it.
  bool MayBegin(const ScheduledStream& stream) const;
  // Whether the stream has begun a slice that has examples to hand out.
  static bool HasMore(const ScheduledStream& stream);
  // What the stream may hold of the budget, in bytes: its part of its peer's part, or less if it
  // wants no more.
  int64_t ShareBytes(const ScheduledStream& stream) const;
  // Takes some of the examples of the slice, or gives them back: keeps count of what was returned.
  template <typename Change>
  static void ChangeRuns(SharedSlice& slice, Change change);
  // What the stream holds of the budget, in bytes.
  static int64_t HeldBytes(const ScheduledStream& stream);
  // Whether there is room for a slice of the stream once nothing is kept for others.
  bool HasRoom(const ScheduledStream& stream) const;
  // Whether it has nothing at all, and somebody needs its next slice now.
  static bool IsEmptyHanded(const ScheduledStream& stream);
  // Whether all that was made for it is look-ahead, and gives way to `starved`.
  static bool GivesWay(const ScheduledStream& stream, const ScheduledStream& starved);
  // Whether the consumer has to drop a slice before it gets another one.
  static bool WindowIsFull(const ScheduledStream& stream);

  // The stream that goes first, null if there is no work, and how many streams could go.
  struct Choice {
    StreamPtr stream;
    int64_t wanting = 0;
  };
  Choice Choose(bool beside);
  // Begins the stream's next slice, or joins one that there is. Neither, if the system has no
  // memory: the stream has failed.
  void Begin(ScheduledStream& stream);
  // Takes memory back for `starved`, which holds nothing. True if some came back at once.
  bool TakeBackLookAhead(const ScheduledStream& starved);
  // Throws away the last pending slice. It may be begun again.
  void TakeBackLast(ScheduledStream& stream);
  // Throws away `slice`, which is pending, and all behind it. The stream fails with `status`.
  // Returns what a waiting consumer is told now, if anything.
  Answer FailAt(ScheduledStream& stream, const SharedSlice& slice, const absl::Status& status);
  // The stream no longer holds `slice`. If nobody does, its memory comes back: now, when the last
  // task that writes there is done, or when no other stream is still to come to it.
  void Leave(ScheduledStream& stream, const std::shared_ptr<SharedSlice>& slice);
  // What a waiting consumer is told now, if anything.
  Answer AnswerOf(ScheduledStream& stream);

  bool Shares(const ScheduledStream& stream) const;
  // The stream's next slice, if another stream has it; else null.
  std::shared_ptr<SharedSlice> FindNext(const ScheduledStream& stream) const;
  // Joins slices that others have, as far as the stream may look ahead.
  void JoinAhead(ScheduledStream& stream);
  // `slice` is the stream's next one from now on.
  void Hold(ScheduledStream& stream, std::shared_ptr<SharedSlice> slice);
  // Whether some stream is still to come to the slice.
  bool IsWanted(const SharedSlice& slice) const;
  // Nobody holds `slice`, which is done: keeps it if it is wanted and there is room, else gives its
  // memory back.
  void KeepOrRelease(const std::shared_ptr<SharedSlice>& slice);
  // Gives back the memory of kept slices that no stream will come to.
  void ForgetUnwanted();
  // Of those that are kept, gives the last ones back until `bytes` more fit into the budget.
  void MakeRoom(int64_t bytes);
  // No longer keeps `slice`, which has a holder again.
  void Unkeep(SharedSlice& slice);
  void Release(SharedSlice& slice);

  int threads_;
  const bool share_slices_;
  BufferPool buffers_;
  FairClock clock_;
  std::vector<StreamPtr> streams_;
  std::map<std::string, int> overdue_;  // Tasks of each peer.
  int64_t returning_bytes_ = 0;         // Of slices that are dropped while a task writes to them.
  int64_t examples_made_ = 0;
  int64_t slices_shared_ = 0;
  std::map<SharedSlice::Key, std::shared_ptr<SharedSlice>> shared_;
  SharedSlice::Kept kept_;  // Those that nobody holds, oldest first.
  int64_t kept_bytes_ = 0;
  bool kept_may_be_unwanted_ = false;  // A stream ended that may have wanted them.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_STEP_SCHEDULER_H_
