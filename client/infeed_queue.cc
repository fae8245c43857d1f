#include "client/infeed_queue.h"

#include <utility>

namespace systole {

std::optional<TensorView> CoreStep::Find(absl::string_view name) const {
  const int index = layout->IndexOf(name);
  if (index < 0) return std::nullopt;
  return Tensor(index);
}

InfeedQueue::InfeedQueue(int64_t capacity, MonotonicClock clock)
    : clock_(std::move(clock)), queue_(capacity) {}

absl::Status InfeedQueue::Push(CoreStep step) { return queue_.Push(std::move(step)); }

absl::StatusOr<std::optional<CoreStep>> InfeedQueue::Pop() {
  const absl::Duration begin = clock_();
  absl::StatusOr<std::optional<CoreStep>> step = queue_.Pop();
  const absl::Duration end = clock_();
  MutexLock lock(mu_);
  stall_ += end - begin;
  if (step.ok() && !step->has_value() && !end_.ok()) return end_;
  return step;
}

void InfeedQueue::Close(absl::Status status) {
  {
    MutexLock lock(mu_);
    if (closed_) return;
    closed_ = true;
    end_ = std::move(status);  // Before the queue closes: a Pop() that sees the end must see this.
  }
  queue_.Close();
}

void InfeedQueue::Cancel(absl::Status status) { queue_.Cancel(std::move(status)); }

absl::Duration InfeedQueue::stall() const {
  MutexLock lock(mu_);
  return stall_;
}

}  // namespace systole
