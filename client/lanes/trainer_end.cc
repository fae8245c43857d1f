#include "client/lanes/trainer_end.h"

#include <utility>

#include "core/status/check.h"

namespace systole {

void TrainerEnd::Start(int64_t first_step, int64_t end_step, int64_t window_steps) {
  first_step_ = first_step;
  window_.emplace(first_step_, window_steps);
  spans_.resize(static_cast<size_t>(window_steps));
  end_step_ = end_step;
}

bool TrainerEnd::Put(int64_t step, StepBuffer buffer, StepSpans spans) {
  window_->Put(step, std::move(buffer));
  spans_[static_cast<size_t>(step % window_->size())] = std::move(spans);
  return step == window_->next_step();
}

void TrainerEnd::EndEarly(int64_t step, absl::Status error) {
  error_step_ = step;
  error_ = std::move(error);
}

void TrainerEnd::Cancel(absl::Status error) {
  SYSTOLE_CHECK(!error.ok());
  if (cancelled_.ok()) cancelled_ = std::move(error);
}

void TrainerEnd::WaitEnds(absl::Duration now) {
  SYSTOLE_CHECK(waits_since_.has_value());
  waited_ += now - *std::exchange(waits_since_, std::nullopt);
}

TrainerReport TrainerEnd::Report(absl::Duration now) const {
  if (!window_.has_value()) return {};
  StepWait so_far = {.at = now, .waited = waited_, .ready_at = now};
  if (waits_since_.has_value()) so_far.waited += now - *waits_since_;
  if (window_->HasNext()) {
    const auto place = static_cast<size_t>(window_->next_step() % window_->size());
    so_far.ready_at = spans_[place].complete_at();
  }
  const std::optional<LatelyWaited> lately = shares_.Lately(so_far);
  if (!lately.has_value()) return {};
  return {.waits = lately->verdict.waits,
          .steps_per_second = lately->steps_per_second,
          .limit = lately->verdict.limit,
          .output = lately->verdict.output};
}

bool TrainerEnd::HasNext() const {
  return !cancelled_.ok() || window_->HasNext() ||
         window_->next_step() >= std::min(end_step_, error_step_);
}

absl::StatusOr<std::optional<TrainerEnd::TakenStep>> TrainerEnd::Next(FeedClientStats& stats,
                                                                      absl::Duration now) {
  if (!cancelled_.ok()) return cancelled_;
  const int64_t number = window_->next_step();
  std::optional<StepBuffer> buffer = window_->TakeNext();
  if (!buffer.has_value()) {
    SYSTOLE_CHECK(number >= std::min(end_step_, error_step_));
    if (number >= end_step_) return std::optional<TakenStep>();
    return error_;
  }
  const absl::Duration waited = std::exchange(waited_, absl::ZeroDuration());
  if (number != first_step_) stats.AddWait(number, waited);
  const StepSpans& spans = spans_[static_cast<size_t>(number % window_->size())];
  shares_.Take({.at = now, .waited = waited, .ready_at = spans.complete_at()}, spans.spans());
  return TakenStep{.number = number, .buffer = *std::move(buffer)};
}

}  // namespace systole
