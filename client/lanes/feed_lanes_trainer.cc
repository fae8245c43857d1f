// FeedLanes: what the trainer's thread calls.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/lanes/feed_lanes.h"
#include "client/step/missing_examples.h"
#include "core/status/check.h"

namespace systole {
namespace {

// Steps that a trainer's loop holds besides the window's: the one in hand, and for a moment the one
// that takes its place. Their buffers are kept for reuse too.
constexpr int64_t kStepsInHand = 2;

// How often a caller that waits is asked whether it still wants to.
constexpr absl::Duration kInterruptedEvery = absl::Milliseconds(50);

}  // namespace

absl::StatusOr<v1::ResolveFeedResponse> FeedLanes::WaitForAnswer() {
  const absl::Duration deadline = clock_() + options_.connect_timeout;
  while (true) {
    {
      MutexLock lock(mu_);
      if (!answer_.has_value() && error_.ok()) {
        const absl::Duration left = deadline - clock_();
        // A name may get an address yet. A list that is wrong is for a person to mend.
        if (servers_.empty() && !list_error_.ok() &&
            (left <= absl::ZeroDuration() || !absl::IsUnavailable(list_error_))) {
          return list_error_;
        }
        if (left <= absl::ZeroDuration()) {
          return Unreachable(absl::StrCat("no server has answered within ",
                                          absl::FormatDuration(options_.connect_timeout)),
                             servers_);
        }
        trainer_wakes_.WaitFor(mu_, std::min(left, kInterruptedEvery));
      }
      if (answer_.has_value()) return *answer_;
      if (!error_.ok()) return error_;
    }
    // Without the lock: the caller's function may wait for a thread that wants it.
    if (options_.interrupted != nullptr && options_.interrupted()) {
      return absl::CancelledError("interrupted while waiting for a server");
    }
  }
}

void FeedLanes::Start(std::shared_ptr<const StepShape> shape,
                      std::shared_ptr<const StepFinisher> finisher, const Order& order,
                      int64_t end_step, int64_t window_steps) {
  MutexLock lock(mu_);
  shape_ = std::move(shape);
  finisher_ = std::move(finisher);
  order_ = std::make_shared<const Order>(order);
  shelf_ = StepShelf::Create(shape_->bytes(), window_steps + kStepsInHand, options_.memory);
  window_.emplace(options_.first_step, window_steps);
  end_step_ = end_step;
  Tell(
      FeedStarted{.first_step = options_.first_step, .end_step = end_step, .window = window_steps});
}

absl::StatusOr<std::optional<Step>> FeedLanes::Next() {
  std::vector<ChunkStream*> resumed;
  std::optional<Step> step;
  std::shared_ptr<const Order> order;
  {
    MutexLock lock(mu_);
    while (true) {
      if (!cancelled_.ok()) return cancelled_;
      const int64_t number = window_->next_step();
      if (std::optional<StepBuffer> buffer = window_->TakeNext()) {
        step.emplace(number, shape_, *std::move(buffer));
        CountWait(number);
        order = order_;
        break;
      }
      if (number >= end_step_) return std::optional<Step>();
      if (number >= error_step_) return error_;
      Tell(StepWanted());
      if (number >= error_step_) return error_;  // That it is wanted may show that it is overdue.
      const absl::Duration begin = clock_();
      trainer_wakes_.Wait(mu_);
      waited_ += clock_() - begin;
    }
    Tell(StepTaken());
    resumed.swap(resumed_);
  }
  // A stream with a chunk asked for does not end before that was answered, so these are still
  // there.
  for (ChunkStream* stream : resumed) stream->Read();
  const MissingExamples missing = FindMissing(*step, *order);
  if (!missing.empty()) {
    MutexLock lock(mu_);
    AddMissing(missing, stats_);
    log_.Masked(step->number(), missing);
    if (!log_.empty()) keeper_wakes_.SignalAll();
  }
  return step;
}

void FeedLanes::CountWait(int64_t step) {
  const absl::Duration waited = std::exchange(waited_, absl::ZeroDuration());
  if (step == options_.first_step || waited <= stats_.longest_wait) return;
  stats_.longest_wait = waited;
  stats_.longest_wait_step = step;
}

bool FeedLanes::HasNext() const {
  return !cancelled_.ok() || window_->HasNext() || window_->next_step() >= limit();
}

bool FeedLanes::WaitForNext(absl::Duration timeout) {
  absl::Duration now = clock_();
  const absl::Duration end = now + timeout;
  MutexLock lock(mu_);
  while (!HasNext()) {
    Tell(StepWanted());
    if (HasNext()) return true;  // As in Next().
    if (now >= end) return false;
    trainer_wakes_.WaitFor(mu_, end - now);
    const absl::Duration woken = clock_();
    waited_ += woken - std::exchange(now, woken);
  }
  return true;
}

void FeedLanes::Cancel(absl::Status status) {
  SYSTOLE_CHECK(!status.ok());
  MutexLock lock(mu_);
  if (cancelled_.ok()) cancelled_ = std::move(status);
  Tell(FeedStopped());
  trainer_wakes_.SignalAll();
  keeper_wakes_.SignalAll();
}

int64_t FeedLanes::next_step() const {
  MutexLock lock(mu_);
  return window_.has_value() ? window_->next_step() : options_.first_step;
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
  return stats;
}

std::optional<FeedWaiting> FeedLanes::waiting() const {
  MutexLock lock(mu_);
  if (Stopped()) return std::nullopt;
  const std::optional<ScheduleWaiting> wait = schedule_.Waiting(clock_());
  if (!wait.has_value()) return std::nullopt;
  FeedWaiting waiting = {.asking = servers_.at(wait->asking).link->address(),
                         .waited = wait->waited,
                         .limit = wait->limit,
                         .started = stats_.steps_received > 0};
  if (wait->lost.has_value()) {
    const KnownServer& lost = servers_.at(*wait->lost);
    waiting.lost = lost.link->address();
    waiting.error = std::string(lost.last_error.message());
  }
  return waiting;
}

int64_t FeedLanes::num_servers() const {
  MutexLock lock(mu_);
  return std::count_if(servers_.begin(), servers_.end(),
                       [](const auto& entry) { return !entry.second.left; });
}

}  // namespace systole
