#include "client/local/slice_source.h"

#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "core/concurrency/mutex.h"

namespace systole {

// The engine's threads put the requested slice, or an error, here. Only one slice is requested at a
// time.
struct SliceSource::Inbox {
  Mutex mu;
  CondVar arrived;
  bool asked ABSL_GUARDED_BY(mu) = false;
  std::optional<StepStream::Result> answer ABSL_GUARDED_BY(mu);
  absl::Duration answered_at ABSL_GUARDED_BY(mu);
};

SliceSource::SliceSource(std::unique_ptr<StepStream> stream, int slices_per_step)
    : slices_per_step_(static_cast<size_t>(slices_per_step)),
      inbox_(std::make_shared<Inbox>()),
      stream_(std::move(stream)) {}

SliceSource::~SliceSource() = default;

bool SliceSource::IsReady() const { return !error_.ok() || slices_.size() == slices_per_step_; }

void SliceSource::Ask() {
  {
    MutexLock lock(inbox_->mu);
    if (inbox_->asked) return;
    inbox_->asked = true;
  }
  stream_->Next([inbox = inbox_, clock = clock_](StepStream::Result answer) {
    MutexLock lock(inbox->mu);
    inbox->answered_at = clock();
    inbox->answer = std::move(answer);
    inbox->arrived.Signal();
  });
}

bool SliceSource::WaitFor(absl::Duration timeout) {
  const absl::Duration end = clock_() + timeout;
  while (!IsReady()) {
    Ask();
    MutexLock lock(inbox_->mu);
    while (!inbox_->answer.has_value()) {
      const absl::Duration left = end - clock_();
      if (left <= absl::ZeroDuration()) return false;
      inbox_->arrived.WaitFor(inbox_->mu, left);
    }
    StepStream::Result answer = *std::exchange(inbox_->answer, std::nullopt);
    inbox_->asked = false;
    if (!answer.ok()) {
      error_ = answer.status();
    } else if (!answer->has_value()) {
      error_ = absl::InternalError("the engine's stream ended before the feed");
    } else {
      slices_.push_back({.slice = **std::move(answer), .at = inbox_->answered_at});
    }
  }
  return true;
}

absl::StatusOr<std::vector<SliceSource::Delivered>> SliceSource::Take() {
  WaitFor(absl::InfiniteDuration());
  if (!error_.ok()) return error_;
  return std::exchange(slices_, {});
}

int64_t SliceSource::CountReady() const {
  size_t slices = static_cast<size_t>(stream_->CountReady());
  {
    MutexLock lock(inbox_->mu);
    if (inbox_->answer.has_value() && inbox_->answer->ok()) ++slices;
  }
  return static_cast<int64_t>(slices / slices_per_step_);
}

void SliceSource::Cancel() { stream_->Cancel(); }

}  // namespace systole
