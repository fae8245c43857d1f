#include "client/infeed/infeed_queue.h"

#include <utility>

namespace systole {

std::optional<TensorView> CoreStep::Find(absl::string_view name) const {
  const int index = layout->IndexOf(name);
  if (index < 0) return std::nullopt;
  return Tensor(index);
}

InfeedQueue::InfeedQueue(int64_t capacity, MonotonicClock clock)
    : clock_(std::move(clock)), queue_(capacity) {}

absl::Status InfeedQueue::Push(CoreStep step) {
  step.arrived_at = clock_();
  return queue_.Push(std::move(step));
}

absl::StatusOr<std::optional<CoreStep>> InfeedQueue::Pop() {
  absl::StatusOr<std::optional<CoreStep>> step = queue_.Pop();
  if (!step.ok() || step->has_value()) return step;
  MutexLock lock(mu_);
  if (!end_.ok()) return end_;
  return step;
}

void InfeedQueue::Close(absl::Status status) {
  {
    MutexLock lock(mu_);
    if (closed_) return;
    closed_ = true;
    end_ = std::move(status);  // Set before the queue closes, so that Pop() finds it at the end.
  }
  queue_.Close();
}

void InfeedQueue::Cancel(absl::Status status) { queue_.Cancel(std::move(status)); }

}  // namespace systole
