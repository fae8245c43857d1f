// FeedLanes: what the trainer's thread calls.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/feed/feed_lanes.h"
#include "client/feed/missing_examples.h"
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
                      std::shared_ptr<const StepFinisher> finisher, std::optional<Order> order,
                      int64_t end_step, int64_t window_steps) {
  MutexLock lock(mu_);
  shape_ = std::move(shape);
  finisher_ = std::move(finisher);
  order_ = std::move(order);
  if (finisher_ != nullptr) {
    for (FeedLane& lane : lanes_) UseServer(lane, lane.server);
  }
  shelf_ = StepShelf::Create(shape_->bytes(), window_steps + kStepsInHand, options_.memory);
  window_.emplace(options_.first_step, window_steps);
  end_step_ = end_step;
  // The time until now was the trainer's.
  for (FeedLane& lane : lanes_) lane.retry.Progress();
  keeper_wakes_.SignalAll();
}

absl::StatusOr<std::optional<Step>> FeedLanes::Next() {
  std::vector<ChunkStream*> resumed;
  std::optional<Step> step;
  std::optional<Order> order;
  {
    MutexLock lock(mu_);
    while (true) {
      if (!cancelled_.ok()) return cancelled_;
      const int64_t number = window_->next_step();
      if (std::optional<StepBuffer> buffer = window_->TakeNext()) {
        step.emplace(number, shape_, *std::move(buffer));
        order = order_;
        break;
      }
      if (number >= end_step_) return std::optional<Step>();
      if (number >= error_step_) return error_;
      trainer_wakes_.Wait(mu_);
    }
    for (FeedLane& lane : lanes_) {
      if (!window_->Allows(lane.step)) continue;
      if (lane.paused) {
        lane.paused = false;
        lane.heard_at = clock_();
        resumed.push_back(lane.stream.get());
      } else if (lane.stream == nullptr) {
        keeper_wakes_.SignalAll();
      }
    }
  }
  // A stream with a chunk asked for does not end before that was answered, so these are still
  // there.
  for (ChunkStream* stream : resumed) stream->Read();
  const MissingExamples missing = FindMissing(*step, order);
  if (!missing.empty()) {
    MutexLock lock(mu_);
    AddMissing(missing, stats_);
  }
  return step;
}

bool FeedLanes::HasNext() const {
  return !cancelled_.ok() || window_->IsNextComplete() || window_->next_step() >= limit();
}

bool FeedLanes::WaitForNext(absl::Duration timeout) {
  const absl::Duration end = clock_() + timeout;
  MutexLock lock(mu_);
  while (!HasNext()) {
    const absl::Duration left = end - clock_();
    if (left <= absl::ZeroDuration()) return false;
    trainer_wakes_.WaitFor(mu_, left);
  }
  return true;
}

void FeedLanes::Cancel(absl::Status status) {
  SYSTOLE_CHECK(!status.ok());
  MutexLock lock(mu_);
  if (cancelled_.ok()) cancelled_ = std::move(status);
  trainer_wakes_.SignalAll();
  keeper_wakes_.SignalAll();
}

int64_t FeedLanes::next_step() const {
  MutexLock lock(mu_);
  return window_.has_value() ? window_->next_step() : options_.first_step;
}

FeedClientStats FeedLanes::stats() const {
  MutexLock lock(mu_);
  return stats_;
}

std::optional<FeedWaiting> FeedLanes::waiting() const {
  MutexLock lock(mu_);
  std::optional<FeedWaiting> longest;
  if (Stopped()) return longest;
  const absl::Duration now = clock_();
  const bool started = stats_.steps_received > 0;
  const int64_t next = window_.has_value() ? window_->next_step() : options_.first_step;
  for (const FeedLane& lane : lanes_) {
    if (lane.step >= limit()) continue;
    std::optional<FeedWaiting> waiting = lane.Waiting(servers_, options_, now, started, next);
    if (!waiting.has_value()) continue;
    if (!longest.has_value() || waiting->waited > longest->waited) longest = std::move(waiting);
  }
  return longest;
}

}  // namespace systole
