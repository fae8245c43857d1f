#include "core/engine/scheduled_stream.h"

#include <algorithm>
#include <utility>

#include "core/engine/task_size.h"
#include "core/status/check.h"

namespace systole {
namespace {

// Guessed nanoseconds to make an example, for each byte of its record and for each value that is
// computed. These guesses are used until the first task of a stream is done.
constexpr double kGuessedCostPerByte = 10;
constexpr double kGuessedCostPerElement = 1;

}  // namespace

ScheduledStream::ScheduledStream(std::shared_ptr<const FeedPlan> plan, const StepRange& range,
                                 const StreamMemory& memory, int64_t num_slices, std::string peer,
                                 std::shared_ptr<ValueCache> cache)
    : plan_(std::move(plan)),
      range_(range),
      num_slices_(num_slices),
      peer_(std::move(peer)),
      cache_(std::move(cache)),
      task_size_(TaskSizeOf(*plan_)),
      is_far_(plan_->dataset().far_bytes() > 0),
      holdings_(plan_->layout().slice_bytes(), range.num_cores(), memory) {}

void ScheduledStream::Open(FairClock& clock) {
  account_.emplace(clock, peer_,
                   kGuessedCostPerByte * static_cast<double>(plan_->dataset().mean_record_bytes()) +
                       kGuessedCostPerElement * static_cast<double>(plan_->example_elements()));
}

std::pair<int64_t, int> ScheduledStream::PlaceOfNext() const {
  return {range_.first_step + next_to_begin_ / range_.num_cores() * range_.stride,
          range_.core_begin + static_cast<int>(next_to_begin_ % range_.num_cores())};
}

bool ScheduledStream::WillComeTo(int64_t step, int core) const {
  if (!is_good()) return false;
  if (core < range_.core_begin || core >= range_.core_end) return false;
  if (step < range_.first_step || (step - range_.first_step) % range_.stride != 0) return false;
  const int64_t number =
      (step - range_.first_step) / range_.stride * range_.num_cores() + (core - range_.core_begin);
  return number >= next_to_begin_ && number < num_slices_;
}

void ScheduledStream::Begin(SharedSlicePtr slice, absl::Duration now) {
  slice->Join(*this);
  if (!slice->is_done()) returned_ += slice->num_returned();
  pending_.push_back(std::move(slice));
  joined_.push_back(now);
  ++next_to_begin_;
  holdings_.Begin();
}

const SharedSlicePtr& ScheduledStream::FirstWithMore() const {
  SYSTOLE_CHECK(has_more());
  if (returned_ == 0) return pending_.back();
  return *std::find_if(pending_.begin(), pending_.end(),
                       [](const SharedSlicePtr& slice) { return slice->has_more(); });
}

int64_t ScheduledStream::CountReady() const {
  const auto not_done = [](const SharedSlicePtr& slice) { return !slice->is_done(); };
  return std::find_if(pending_.begin(), pending_.end(), not_done) - pending_.begin();
}

SharedSlicePtr ScheduledStream::Deliver(absl::Duration now) {
  SharedSlicePtr slice = std::move(pending_.front());
  pending_.pop_front();
  const absl::Duration wanted = waits() ? std::min(joined_.front(), waits_since_) : joined_.front();
  joined_.pop_front();
  stages_ = slice->times().For(wanted, reads_ahead(), now);
  if (waits()) {
    waited_ += BoundedStageTime(std::min(slice->times().done(), now) - waits_since_);
  }
  step_wait_.reset();
  if (slice->core() == range_.core_end - 1) {
    step_wait_ = std::exchange(waited_, absl::ZeroDuration());
  }
  holdings_.Deliver();
  return slice;
}

SharedSlicePtr ScheduledStream::TakeBackLast() {
  SharedSlicePtr slice = std::move(pending_.back());
  pending_.pop_back();
  joined_.pop_back();
  --next_to_begin_;
  failed_ = absl::OkStatus();  // The next attempt to begin the slice finds the error again.
  holdings_.TakeBack();
  Leave(*slice);
  return slice;
}

void ScheduledStream::Drop(SharedSlice& slice) {
  holdings_.Drop();
  Leave(slice);
}

void ScheduledStream::Leave(SharedSlice& slice) {
  if (!slice.is_done()) returned_ -= slice.num_returned();
  slice.Leave(*this);
}

void ScheduledStream::Wait(DeliveryWaiter waiter, absl::Duration now) {
  SYSTOLE_CHECK(waiter_ == nullptr);
  waiter_ = std::move(waiter);
  waits_since_ = now;
  gave_way_ = false;
}

}  // namespace systole
