// One consumer's stream, as the scheduler knows it: which slices it wants in which order, which
// slices are begun for it, and what its consumer must be told.
//
//   slices 0 .. num_slices - 1:  delivered | pending | next | still to come
//
// Thread-compatible. Only the scheduler changes it, so a lock that guards the scheduler guards it
// too. Any thread may read what is constant.
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
#include "core/cache/value_cache.h"
#include "core/engine/fair_clock.h"
#include "core/engine/pending_slice.h"
#include "core/engine/shared_slice.h"
#include "core/engine/slice_budget.h"
#include "core/engine/step_range.h"
#include "core/plan/feed_plan.h"

namespace systole {

// What a consumer gets: a slice that is done, nullopt at the end, or the error that ended the
// stream.
using Delivery = absl::StatusOr<std::optional<SharedSlicePtr>>;
using DeliveryWaiter = absl::AnyInvocable<void(Delivery)>;

class ScheduledStream {
 public:
  // `num_slices` comes from CountSlices(). `peer` is who asks: peers share threads and memory
  // evenly, and the streams of a peer share its part. `cache` is for outputs that ask for one.
  ScheduledStream(std::shared_ptr<const FeedPlan> plan, const StepRange& range,
                  const StreamMemory& memory, int64_t num_slices, std::string peer = "",
                  std::shared_ptr<ValueCache> cache = nullptr);

  // Constant.
  const std::shared_ptr<const FeedPlan>& plan() const { return plan_; }
  const StreamMemory& memory() const { return holdings_.memory(); }
  const std::string& peer() const { return peer_; }
  ValueCache* cache() const { return cache_.get(); }
  const TaskSize& task_size() const { return task_size_; }
  // What a slice costs the budget.
  int64_t cost_bytes() const { return holdings_.cost_bytes(); }

  // ---- Its slices ----

  // Whether a slice is left to be begun.
  bool has_next() const { return next_to_begin_ < num_slices_; }
  // Step and core of that slice.
  std::pair<int64_t, int> PlaceOfNext() const;
  // Whether the stream is still to begin the slice of this step and core.
  bool WillComeTo(int64_t step, int core) const;
  // `slice` is the stream's next slice, begun for this stream or for another one. Joins the slice.
  void Begin(SharedSlicePtr slice);

  // Slices begun and not delivered, in order. Only the last one may have examples that nobody has
  // taken yet; others may have some that were given back.
  const std::deque<SharedSlicePtr>& pending() const { return pending_; }
  // Whether examples of pending() can be handed out, and the first slice that has some. Looks only
  // at the last slice, unless something was given back.
  bool has_more() const {
    return returned_ > 0 || (!pending_.empty() && pending_.back()->has_more());
  }
  const SharedSlicePtr& FirstWithMore() const;
  // `more` runs of a pending slice were given back and wait; negative: they wait no more.
  void CountReturned(int64_t more) { returned_ += more; }

  // The first pending slice goes to the consumer.
  SharedSlicePtr Deliver();
  // The last pending slice goes back, and is the stream's next one again. Leaves it.
  SharedSlicePtr TakeBackLast();
  // The consumer has dropped a slice. Leaves it.
  void Drop(SharedSlice& slice);

  // What the stream has in flight.
  const StreamHoldings& holdings() const { return holdings_; }

  // ---- Whose turn it is ----

  // Opens the stream's account, which it has from then on.
  void Open(FairClock& clock, double unit_cost) { account_.emplace(clock, peer_, unit_cost); }
  FairClock::Account& account() { return *account_; }
  const FairClock::Account& account() const { return *account_; }

  // Whether no task is taken for the stream for now.
  bool is_blocked() const { return blocked_; }
  void SetBlocked(bool blocked) { blocked_ = blocked; }

  // Whether its last slice went to another stream: then it begins none until its consumer waits.
  bool gave_way() const { return gave_way_; }
  void SetGaveWay(bool gave_way) { gave_way_ = gave_way; }

  // ---- Its consumer ----

  // The error of the slice that comes next; delivered after all of pending().
  const absl::Status& failed() const { return failed_; }
  void Fail(const absl::Status& status) { failed_ = status; }
  // What the consumer was told; OK while the stream lives.
  const absl::Status& ended() const { return ended_; }
  void End(const absl::Status& status) { ended_ = status; }
  bool is_good() const { return ended_.ok() && failed_.ok(); }

  // Whether the consumer waits. REQUIRES of Wait(): it does not yet; of TakeWaiter(): it does.
  bool waits() const { return waiter_ != nullptr; }
  void Wait(DeliveryWaiter waiter);
  DeliveryWaiter TakeWaiter() { return std::exchange(waiter_, nullptr); }

 private:
  void Leave(SharedSlice& slice);

  const std::shared_ptr<const FeedPlan> plan_;
  const StepRange range_;
  const int64_t num_slices_;
  const std::string peer_;
  const std::shared_ptr<ValueCache> cache_;
  const TaskSize task_size_;

  int64_t next_to_begin_ = 0;  // The number of the next slice.
  std::deque<SharedSlicePtr> pending_;
  int64_t returned_ = 0;  // Runs of pending_ that were given back and wait.
  StreamHoldings holdings_;
  std::optional<FairClock::Account> account_;
  bool blocked_ = false;
  bool gave_way_ = false;
  absl::Status failed_;
  absl::Status ended_;
  DeliveryWaiter waiter_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_SCHEDULED_STREAM_H_
