#include "client/verdict/step_spans.h"

#include <algorithm>

namespace systole {

void StepSpans::Append(WaitCause cause, absl::Duration begin, absl::Duration end, int output,
                       int operation) {
  if (begin >= end) return;
  if (!spans_.empty()) {
    StageSpan& last = spans_.back();
    if (last.end == begin && last.cause == cause && last.output == output &&
        last.operation == operation) {
      last.end = end;
      return;
    }
  }
  spans_.push_back(
      {.cause = cause, .output = output, .operation = operation, .begin = begin, .end = end});
}

void StepSpans::BeginSlice(const std::optional<StageTimes>& stages, absl::Duration arrived,
                           absl::Duration handled) {
  EndSlice();
  const absl::Duration made = arrived - stages.value_or(StageTimes()).wait;
  arrived = std::max(arrived, end_);
  handled = std::max(handled, arrived);
  if (!stages.has_value()) {
    Append(WaitCause::kUnknown, end_, arrived);
  } else if (made <= end_) {
    Append(WaitCause::kWire, end_, arrived);
  } else {
    const absl::Duration read = made - stages->make;
    const absl::Duration begun = read - stages->read;
    while (!spans_.empty() && spans_.back().begin >= begun) spans_.pop_back();
    if (!spans_.empty()) spans_.back().end = std::min(spans_.back().end, begun);
    Append(WaitCause::kStorage, begun, read);
    Append(WaitCause::kDecode, read, made, stages->costliest, stages->operation);
    Append(WaitCause::kWire, made, arrived);
  }
  in_slice_ = true;
  arrived_ = arrived;
  handled_ = handled - arrived;
  end_ = handled;
}

void StepSpans::AddChunk(absl::Duration arrived, absl::Duration handled) {
  arrived = std::max(arrived, end_);
  end_ = std::max(handled, end_);
  handled_ += end_ - arrived;
}

void StepSpans::AddBefore(StepSpans other) {
  other.Complete();
  const absl::Duration begin = spans_.empty() ? end_ : spans_.front().begin;
  while (!other.spans_.empty() && other.spans_.back().begin >= begin) other.spans_.pop_back();
  if (other.spans_.empty()) return;
  other.spans_.back().end = std::min(other.spans_.back().end, begin);
  spans_.insert(spans_.begin(), other.spans_.begin(), other.spans_.end());
}

void StepSpans::Clear() {
  spans_.clear();
  in_slice_ = false;
  end_ = -absl::InfiniteDuration();
}

void StepSpans::EndSlice() {
  if (!in_slice_) return;
  in_slice_ = false;
  Append(WaitCause::kWire, arrived_, end_ - handled_);
  Append(WaitCause::kClient, end_ - handled_, end_);
}

}  // namespace systole
