// FeedLanes: what the trainer's thread calls.
#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/lanes/feed_lanes.h"
#include "client/step/missing_examples.h"

namespace systole {
namespace {

// Steps that a trainer's loop holds besides those in the window: the current step and, for a
// moment, the next one. Their buffers are kept for reuse, too.
constexpr int64_t kStepsInHand = 2;

// How often FeedClientOptions::interrupted is called during a wait.
constexpr absl::Duration kInterruptedEvery = absl::Milliseconds(50);

}  // namespace

absl::StatusOr<v1::ResolveFeedResponse> FeedLanes::WaitForAnswer() {
  const absl::Duration deadline = clock_() + options_.connect_timeout;
  while (true) {
    {
      MutexLock lock(mu_);
      if (!servers_.answer().has_value() && trainer_.error().ok()) {
        const absl::Duration left = deadline - clock_();
        // After Unavailable the wait goes on, because a server's name may still get an address. Any
        // other error means that the list is wrong, and a person must correct it.
        if (servers_.empty() && !list_error_.ok() &&
            (left <= absl::ZeroDuration() || !absl::IsUnavailable(list_error_))) {
          return list_error_;
        }
        if (left <= absl::ZeroDuration()) {
          return servers_.Unreachable(absl::StrCat("no server has answered within ",
                                                   absl::FormatDuration(options_.connect_timeout)));
        }
        trainer_wakes_.WaitFor(mu_, std::min(left, kInterruptedEvery));
      }
      if (servers_.answer().has_value()) return *servers_.answer();
      if (!trainer_.error().ok()) return trainer_.error();
    }
    // Called without the lock, because the caller's function may wait for a thread that wants the
    // lock.
    if (options_.interrupted != nullptr && options_.interrupted()) {
      return absl::CancelledError("interrupted while waiting for a server");
    }
  }
}

void FeedLanes::Start(std::shared_ptr<const StepShape> shape,
                      std::shared_ptr<const StepFinisher> finisher, const Order& order,
                      int64_t first_step, int64_t end_step, int64_t window_steps) {
  MutexLock lock(mu_);
  order_ = std::make_shared<const Order>(order);
  shelf_ = StepShelf::Create(shape->bytes(), window_steps + kStepsInHand, options_.memory);
  lanes_.Start(std::move(shape), std::move(finisher), options_.finish == "client", shelf_);
  trainer_.Start(first_step, end_step, window_steps);
  Tell(FeedStarted{.first_step = first_step, .end_step = end_step, .window = window_steps});
}

absl::StatusOr<std::optional<Step>> FeedLanes::Next() {
  Told told;
  std::optional<Step> step;
  std::shared_ptr<const Order> order;
  {
    MutexLock lock(mu_);
    while (!trainer_.HasNext()) {
      Tell(StepWanted());
      if (trainer_.HasNext()) break;  // Tell() ends a feed whose trainer has waited too long.
      trainer_.WaitBegins(clock_());
      trainer_wakes_.Wait(mu_);
      trainer_.WaitEnds(clock_());
    }
    absl::StatusOr<std::optional<TrainerEnd::TakenStep>> taken = trainer_.Next(stats_, clock_());
    if (!taken.ok()) return taken.status();
    if (!taken->has_value()) return std::optional<Step>();
    step.emplace((*taken)->number, lanes_.shape(), std::move((*taken)->buffer));
    order = order_;
    told = Tell(StepTaken());
  }
  // Without mu_, these streams still exist: the schedule counts them as reading, and a reading
  // stream is destroyed only after a read of it has failed. Their next reads begin only here.
  for (ChunkStream* stream : told.resumed) stream->Read();
  const MissingExamples missing = FindMissing(*step, *order);
  examples_taken_.fetch_add(missing.present, std::memory_order_relaxed);
  if (!missing.empty()) {
    MutexLock lock(mu_);
    AddMissing(missing, stats_);
    log_.Masked(step->number(), missing);
    if (!log_.empty()) keeper_wakes_.SignalAll();
  }
  return step;
}

bool FeedLanes::WaitForNext(absl::Duration timeout) {
  absl::Duration now = clock_();
  const absl::Duration end = now + timeout;
  MutexLock lock(mu_);
  while (!trainer_.HasNext()) {
    Tell(StepWanted());
    if (trainer_.HasNext()) return true;  // See Next().
    if (now >= end) return false;
    trainer_.WaitBegins(now);
    trainer_wakes_.WaitFor(mu_, end - now);
    now = clock_();
    trainer_.WaitEnds(now);
  }
  return true;
}

void FeedLanes::Cancel(absl::Status status) {
  MutexLock lock(mu_);
  trainer_.Cancel(std::move(status));
  Tell(FeedStopped());
  trainer_wakes_.SignalAll();
  keeper_wakes_.SignalAll();
}

int64_t FeedLanes::next_step() const {
  MutexLock lock(mu_);
  return trainer_.next_step();
}

FeedClientStats FeedLanes::stats() const {
  MutexLock lock(mu_);
  FeedClientStats stats = stats_;
  const ScheduleCounts& counts = schedule_.counts();
  stats.retries = counts.retries;
  stats.hedges_won = counts.hedges_won;
  stats.hedges_lost = counts.hedges_lost;
  stats.relieved_steps = counts.relieved_steps;
  stats.membership_changes = counts.membership_changes;
  stats.probes = counts.probes;
  stats.waits = trainer_.waits();
  stats.servers_in_use = schedule_.servers_in_use();
  stats.examples_taken = examples_taken_.load(std::memory_order_relaxed);
  stats.next_step = trainer_.next_step();
  stats.ready_steps = trainer_.CountReady();
  if (lanes_.shape() != nullptr) {
    stats.buffered_bytes = trainer_.complete_steps() * lanes_.shape()->bytes();
  }
  stats.waiting = trainer_.waiting(clock_());
  return stats;
}

std::optional<FeedWaiting> FeedLanes::waiting() const {
  MutexLock lock(mu_);
  if (Stopped()) return std::nullopt;
  const std::optional<ScheduleWaiting> wait = schedule_.Waiting(clock_());
  if (!wait.has_value()) return std::nullopt;
  FeedWaiting waiting = {.asking = servers_.AddressOf(wait->asking),
                         .waited = wait->waited,
                         .limit = wait->limit,
                         .started = stats_.steps_received > 0};
  if (wait->lost.has_value()) {
    waiting.lost = servers_.AddressOf(*wait->lost);
    waiting.error = std::string(servers_.LastErrorOf(*wait->lost).message());
  }
  return waiting;
}

}  // namespace systole
