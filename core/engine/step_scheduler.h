// Decides what the threads of a StepEngine do next and which slices its streams get: which slices
// are begun, in what memory, and whose examples are made first. Has no thread, lock or clock.
//
//   Add(stream) -> Take() -> task: a few examples of a slice -> Finish() -> .. -> Next() -> slice
//                  ^    ^                         |                                   |
//                  |    +-- what is left of it <--+ Return()     GiveBack(memory) <---+
//                  the least advanced stream of the least advanced peer
//
// Combines three parts that do not use each other. FairQueue says which stream has the next
// turn. SliceBudget says how many bytes each stream may have in flight. SliceShelf has the slices
// that streams share.
//
// A slice is begun when a thread takes its first task, so there is no queue of slices. If the
// records of a task are read ahead, TakeToRead() returns the task first. After Arrive(), Take()
// returns the task. The scheduler keeps an entry for each stream, and one for each slice that is
// begun and not dropped. Every call costs O(streams), plus the number of entries that it removes.
//
// Streams of one plan share slices. If a stream's next slice was begun for another stream, the
// stream joins that slice, whether the slice is done or not. If all streams have dropped a slice,
// but a stream will reach it later, the slice is kept until a stream needs its memory. Kept slices
// take a quarter of the budget at most.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_STEP_SCHEDULER_H_
#define SYSTOLE_CORE_ENGINE_STEP_SCHEDULER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/engine/fair_queue.h"
#include "core/engine/pending_slice.h"
#include "core/engine/scheduled_stream.h"
#include "core/engine/shared_slice.h"
#include "core/engine/slice_budget.h"
#include "core/engine/slice_shelf.h"
#include "core/engine/slice_task.h"
#include "core/engine/step_scheduler_options.h"
#include "core/plan/feed_plan.h"

namespace systole {

class StepScheduler {
 public:
  using StreamPtr = std::shared_ptr<ScheduledStream>;

  explicit StepScheduler(const StepSchedulerOptions& options);

  using Answer = StreamAnswer;
  // The answers to several streams.
  using Answers = std::vector<StreamAnswer>;
  static void TellAll(Answers answers) {
    for (Answer& answer : answers) answer.Tell();
  }

  struct Work {
    std::optional<SliceTask> task;
    Answer answer;      // The answer to a stream that failed or joined a slice that is done.
    bool more = false;  // Another thread would find work too.

    bool empty() const { return !task.has_value() && answer.waiter == nullptr; }
  };

  // Sets the time for the following calls. Only measurements use it (SliceTimes).
  void SetTime(absl::Duration now) { now_ = now; }
  // ResourceExhausted if one slice of the stream is larger than the whole budget.
  absl::Status Add(const StreamPtr& stream);

  // Takes a task of the stream that goes first. Begins a slice if the stream needs one. If
  // `beside`, leaves out the streams of peers that have an overdue task (worker_watch.h).
  Work Take(bool beside = false);

  // Take() for a task whose records are to be read ahead. Looks only at the streams for whose plan
  // `may_read` returns true.
  using MayRead = absl::FunctionRef<bool(const FeedPlan& plan)>;
  Work TakeToRead(MayRead may_read);
  // Whether TakeToRead() may have a task now. Also true if a slice was thrown away since the last
  // call, because reads for that slice may be unwanted. O(streams).
  bool TakeReadsChanged();
  // The records of `task`, from Take(), were expected in memory, but are not there. The task's run
  // comes back with Arrive() once its records are read. From now on the stream reads ahead again.
  void ReadFirst(const SliceTask& task);
  // The records of a task from TakeToRead() or ReadFirst() are read, and `run` has their bytes. Any
  // thread may take the run. `warm`: the stream's next slices need not be read ahead.
  Answers Arrive(const SliceTask& task, ExampleRun run, bool warm = false);

  // `task` has become overdue, or is no longer overdue.
  void CountOverdue(const SliceTask& task, bool overdue) {
    queue_.CountOverdue(task.stream().peer(), overdue);
  }

  // `task` is done. `run` is its run, with the error if there was one. A thread worked at the task
  // for `cost` nanoseconds, the unit of all costs. Call AddWork() of the slice's times() first.
  Answers Finish(const SliceTask& task, const ExampleRun& run, double cost);

  // The thread's turn is over before the task is done. `run` says how much of the task is done. Any
  // thread may take the rest when it is the stream's turn again.
  Answers Return(const SliceTask& task, ExampleRun run, double cost);

  // `task` is under way and may never be finished. The streams that have the task's slice get the
  // slices before that one, and then fail with `status`. The slice's memory still counts as used,
  // and no stream gets this memory, until Finish() is called for the task.
  Answers Abandon(const SliceTask& task, const absl::Status& status);

  // Calls `blocked` with the plan of each stream. If `blocked` returns a status, no task is taken
  // for the stream until the next call of SetBlocked(). If the status is an error, the stream
  // delivers the slices that are done, and then fails with this error.
  using Blocked = absl::FunctionRef<std::optional<absl::Status>(const FeedPlan& plan)>;
  Answers SetBlocked(Blocked blocked);

  // From now on about `threads` threads work at a time. Bounds how far a stream makes slices ahead.
  void SetThreads(int threads) { threads_ = threads; }

  // Returns what the consumer gets now. nullopt if the consumer has to wait: then call Wait().
  std::optional<Delivery> Next(ScheduledStream& stream);
  // Calls `waiter` once there is something to deliver. True: there may be new work for Take() now.
  // REQUIRES: the stream has no waiter yet.
  bool Wait(ScheduledStream& stream, DeliveryWaiter waiter);

  // The consumer has dropped `slice`. Its memory comes back if no other stream needs the slice.
  Answer GiveBack(ScheduledStream& stream, const SharedSlicePtr& slice);
  // The consumer has dropped a slice that was given away (StreamMemory).
  void TakeBack(SharedSlice& slice) { budget_.TakeBack(slice.TakeBuffer()); }

  // Ends the stream. Slices that are being made are thrown away when their tasks are done.
  Answer Cancel(const StreamPtr& stream);

  // The streams that are not cancelled.
  absl::Span<const StreamPtr> streams() const { return streams_; }
  int64_t slices_kept() const { return static_cast<int64_t>(shelf_.kept()); }  // See SliceShelf.
  int64_t examples_made() const { return examples_made_; }
  int64_t slices_shared() const { return slices_shared_; }
  const SliceBudget& budget() const { return budget_; }

 private:
  // The stream that goes first (null if there is no work), and how many streams could go on.
  struct Choice {
    StreamPtr stream;
    int64_t wanting = 0;
  };
  // `candidate_of` says what a stream could do now.
  using CandidateOf = absl::FunctionRef<FairQueue::Candidate(ScheduledStream& stream)>;
  Choice Choose(CandidateOf candidate_of, FairQueue::Accounts accounts);
  FairQueue::Candidate MakerCandidate(ScheduledStream& stream, bool beside) const;
  FairQueue::Candidate ReaderCandidate(ScheduledStream& stream, MayRead may_read) const;
  // Fills in whether the stream may begin a slice, and whether there is room. `begins`: whether the
  // caller begins the slices of this stream. If not, Candidate::may_begin is set only while the
  // stream lacks room: then other streams have to wait for it.
  void LookForRoom(ScheduledStream& stream, bool begins, FairQueue::Candidate& candidate) const;
  // The stream's claim on the budget, with its share among all streams.
  SliceBudget::Claim ClaimOf(const ScheduledStream& stream) const;
  // Whether the stream may begin another slice, if there is memory for it.
  bool MayBegin(const ScheduledStream& stream) const;
  bool MayBegin(const ScheduledStream& stream, const SliceBudget::Claim& claim) const;
  // Begins the stream's next slice, or joins this slice if another stream has begun it. If the
  // system has no memory, the stream fails.
  void Begin(ScheduledStream& stream);

  // `task` has ended. If it was the last task of its slice, returns the answers to the slice's
  // streams.
  Answers Settle(const SliceTask& task);
  // Throws away the stream's pending slices from `slice` on. The stream fails with `status`.
  Answer FailAt(ScheduledStream& stream, const SharedSlice& slice, const absl::Status& status);
  // The answer to a waiting consumer, if there is one.
  Answer AnswerOf(ScheduledStream& stream);

  // Takes slices back from other streams, to make room for `starved`, which holds no slice. True if
  // some memory came back at once.
  bool TakeBackLookAhead(const ScheduledStream& starved);
  // Throws away the stream's last pending slice. The stream may begin this slice again.
  void TakeBackLast(ScheduledStream& stream) { ReleaseIfLeft(stream.TakeBackLast()); }
  // A stream has left `slice`. If no stream has the slice any more, the slice's memory comes back:
  //   * if tasks still write to this memory: when the last of these tasks is done;
  //   * if the slice is kept: when a stream needs memory, or when no stream will reach the slice;
  //   * otherwise at once.
  void ReleaseIfLeft(const SharedSlicePtr& slice);

  bool Shares(const ScheduledStream& stream) const;
  // The stream's next slice, if it was begun for another stream; else null.
  SharedSlicePtr FindNext(const ScheduledStream& stream) const;
  // Joins the stream's next slices that others have begun, as far ahead as MayBegin() allows.
  void JoinAhead(ScheduledStream& stream);
  // The stream begins or joins `slice`, its next slice.
  void Hold(ScheduledStream& stream, SharedSlicePtr slice);
  // Whether some stream will reach the slice later.
  bool IsWanted(const SharedSlice& slice) const;
  // No stream has `slice`, which is done. Keeps the slice if some stream will reach it and there is
  // room. Otherwise gives its memory back.
  void KeepOrRelease(const SharedSlicePtr& slice);
  // Gives back the memory of kept slices that no stream will reach.
  void ForgetUnwanted();

  int threads_;
  const bool share_slices_;
  FairQueue queue_;
  SliceBudget budget_;
  SliceShelf shelf_;
  std::vector<StreamPtr> streams_;
  std::vector<FairQueue::Candidate> candidates_;  // For Choose(): one for each of streams_.
  int64_t examples_made_ = 0;
  int64_t slices_shared_ = 0;
  bool dropped_slices_ = false;        // Whether a slice was dropped since TakeReadsChanged().
  bool kept_may_be_unwanted_ = false;  // Whether a stream has ended since ForgetUnwanted().
  absl::Duration now_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_STEP_SCHEDULER_H_
