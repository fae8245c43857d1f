// One consumer's stream, with the state that the scheduler needs: which slices the stream needs and
// in which order, which of these slices are begun, and the answer to its consumer.
//
//   slices 0 .. num_slices - 1:  delivered | pending | next | still to come
//
// Thread-compatible. Only the scheduler changes a stream, so a lock that guards the scheduler
// guards its streams too. Any thread may call the functions under "Constant".
#ifndef SYSTOLE_CORE_ENGINE_SCHEDULED_STREAM_H_
#define SYSTOLE_CORE_ENGINE_SCHEDULED_STREAM_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/batch/stage_times.h"
#include "core/cache/value_cache.h"
#include "core/engine/fair_clock.h"
#include "core/engine/pending_slice.h"
#include "core/engine/shared_slice.h"
#include "core/engine/slice_budget.h"
#include "core/engine/step_range.h"
#include "core/plan/feed_plan.h"

namespace systole {

// The answer that a consumer gets: a slice that is done, nullopt at the end, or the error that
// ended the stream.
using Delivery = absl::StatusOr<std::optional<SharedSlicePtr>>;
using DeliveryWaiter = absl::AnyInvocable<void(Delivery)>;

// The answer to a consumer that waited. Call Tell() without holding a lock, because the waiter may
// call any function.
struct StreamAnswer {
  DeliveryWaiter waiter;  // Null: no consumer waited.
  Delivery delivery = std::optional<SharedSlicePtr>();

  void Tell() {
    if (waiter != nullptr) waiter(std::move(delivery));
  }
};

class ScheduledStream {
 public:
  // `num_slices` comes from CountSlices(). `peer` is the client that opened the stream. Peers share
  // threads and memory evenly, and the streams of a peer share the peer's part. `cache` keeps
  // values of outputs that set `cache` in the spec.
  ScheduledStream(std::shared_ptr<const FeedPlan> plan, const StepRange& range,
                  const StreamMemory& memory, int64_t num_slices, std::string peer = "",
                  std::shared_ptr<ValueCache> cache = nullptr);

  // Constant.
  const std::shared_ptr<const FeedPlan>& plan() const { return plan_; }
  const StreamMemory& memory() const { return holdings_.memory(); }
  const std::string& peer() const { return peer_; }
  ValueCache* cache() const { return cache_.get(); }
  const TaskSize& task_size() const { return task_size_; }
  // Whether some records of the stream are on another machine.
  bool is_far() const { return is_far_; }
  // How many bytes of the budget a slice takes.
  int64_t cost_bytes() const { return holdings_.cost_bytes(); }

  // ---- The stream's records ----

  // Whether the records of the next slices are read ahead. This is not done while the feed of a far
  // stream is warm (WarmFeeds): then threads that compute look for the records in memory.
  bool reads_ahead() const { return is_far_ && !is_warm_; }
  void SetWarm(bool warm) { is_warm_ = warm; }

  // ---- The stream's slices ----

  // Whether the stream has slices that it has not begun or joined yet.
  bool has_next() const { return next_to_begin_ < num_slices_; }
  // Step and core of the first of these slices.
  std::pair<int64_t, int> PlaceOfNext() const;
  // Whether the stream will begin the slice of this step and core later.
  bool WillComeTo(int64_t step, int core) const;
  // The stream joins `slice`, its next slice, which was begun for this stream or for another one.
  // Here and in Deliver(), `now` is used only for stages().
  void Begin(SharedSlicePtr slice, absl::Duration now = absl::ZeroDuration());

  // Slices begun and not delivered, in order. Only the last slice may have examples that were never
  // taken. Any of the slices may have runs that were given back.
  const std::deque<SharedSlicePtr>& pending() const { return pending_; }
  // How many slices at the front of pending() are done.
  int64_t CountReady() const;
  // has_more(): whether examples of pending() can be handed out. FirstWithMore(): the first slice
  // that has such examples. If no run was given back, both functions look only at the last slice.
  bool has_more() const {
    return returned_ > 0 || (!pending_.empty() && pending_.back()->has_more());
  }
  const SharedSlicePtr& FirstWithMore() const;
  // Whether the last slice has examples that were never taken, and whether the first of these must
  // be read ahead.
  bool has_untaken() const { return !pending_.empty() && pending_.back()->has_untaken(); }
  bool has_unread() const { return !pending_.empty() && pending_.back()->has_unread(); }
  // Notes that `more` runs of a pending slice were given back and wait for a thread. If `more` is
  // negative, -`more` runs no longer wait.
  void CountReturned(int64_t more) { returned_ += more; }

  // The first pending slice goes to the consumer.
  SharedSlicePtr Deliver(absl::Duration now = absl::ZeroDuration());
  // The times of the slice that was delivered last. The consumer may read them, too, but only until
  // it calls Next() again.
  const StageTimes& stages() const { return stages_; }
  // How long the consumer waited until the slices of a step were made, if the slice that was
  // delivered last was the last slice of the step; otherwise nullopt. Does not count time in which
  // the consumer waited because it held too many slices.
  const std::optional<absl::Duration>& step_wait() const { return step_wait_; }
  // Takes back the last pending slice. The stream no longer holds the slice, and begins it again
  // later: the slice is now the stream's next slice.
  SharedSlicePtr TakeBackLast();
  // The consumer has dropped `slice`, so the stream no longer holds it.
  void Drop(SharedSlice& slice);

  // The counts of the slices that the stream has in flight.
  const StreamHoldings& holdings() const { return holdings_; }

  // ---- Whose turn it is ----

  // Opens the stream's account. Before that, account() must not be called.
  void Open(FairClock& clock);
  FairClock::Account& account() { return *account_; }
  const FairClock::Account& account() const { return *account_; }

  // Whether the scheduler takes no task for the stream at present.
  bool is_blocked() const { return blocked_; }
  void SetBlocked(bool blocked) { blocked_ = blocked; }

  // Whether the stream gave up its last slice for another stream. If so, it begins no slice until
  // its consumer waits.
  bool gave_way() const { return gave_way_; }
  void SetGaveWay(bool gave_way) { gave_way_ = gave_way; }

  // ---- The stream's consumer ----

  // The error that the consumer gets after all slices of pending(); OK if there is none.
  const absl::Status& failed() const { return failed_; }
  void Fail(const absl::Status& status) { failed_ = status; }
  // The error that ended the stream; OK while the stream lives.
  const absl::Status& ended() const { return ended_; }
  void End(const absl::Status& status) { ended_ = status; }
  bool is_good() const { return ended_.ok() && failed_.ok(); }

  // Whether the consumer waits for a delivery. Wait() requires !waits(), and TakeWaiter() requires
  // waits().
  bool waits() const { return waiter_ != nullptr; }
  void Wait(DeliveryWaiter waiter, absl::Duration now = absl::ZeroDuration());
  DeliveryWaiter TakeWaiter() { return std::exchange(waiter_, nullptr); }

 private:
  void Leave(SharedSlice& slice);

  const std::shared_ptr<const FeedPlan> plan_;
  const StepRange range_;
  const int64_t num_slices_;
  const std::string peer_;
  const std::shared_ptr<ValueCache> cache_;
  const TaskSize task_size_;
  const bool is_far_;
  bool is_warm_ = false;

  int64_t next_to_begin_ = 0;  // The number of the next slice.
  std::deque<SharedSlicePtr> pending_;
  std::deque<absl::Duration> joined_;  // When the stream joined each of pending_.
  StageTimes stages_;
  std::optional<absl::Duration> step_wait_;
  absl::Duration waited_;  // How long the consumer waited for slices of the present step.
  int64_t returned_ = 0;   // Runs of pending_ that were given back and wait for a thread.
  StreamHoldings holdings_;
  std::optional<FairClock::Account> account_;
  bool blocked_ = false;
  bool gave_way_ = false;
  absl::Status failed_;
  absl::Status ended_;
  DeliveryWaiter waiter_;
  absl::Duration waits_since_;  // When the consumer began to wait, if it waits.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_SCHEDULED_STREAM_H_
