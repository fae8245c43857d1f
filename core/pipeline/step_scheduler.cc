#include "core/pipeline/step_scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"

namespace systole {
namespace {

// Examples of one task: enough that handing it over costs nothing beside a decode of half a
// millisecond each, few enough that one slice of images keeps several threads busy.
constexpr int64_t kMinExamplesPerTask = 8;
// Bytes that a task of small ones is made up to, of records read or of padding written: below,
// handing over and reading cost more than the work.
constexpr int64_t kTaskBytes = 256 << 10;
// A thread keeps some 64 bytes for each example of its task.
constexpr int64_t kMaxExamplesPerTask = 4096;

// What making an example costs for each byte of its record, in nanoseconds: a guess, until the
// first task of a stream is done.
constexpr double kGuessedCostPerByte = 10;

// No stream may hold more than this part of the budget, so that one client that stopped reading
// does not starve the others.
constexpr int64_t kMinBudgetParts = 4;

// Slices of two steps that a stream may have begun. More would not keep a client busier.
constexpr int64_t kMaxSlicesOfTwoSteps = 1024;

// `examples`, and those that their last group lacks.
int64_t WholeGroups(const FeedPlan& plan, int64_t examples) {
  const int64_t group = plan.group();
  return (examples + group - 1) / group * group;
}

TaskSize TaskSizeOf(const FeedPlan& plan) {
  const int64_t records = std::clamp(kTaskBytes / plan.dataset().mean_record_bytes(),
                                     kMinExamplesPerTask, kMaxExamplesPerTask);
  const int64_t example_bytes = plan.layout().slice_bytes() / plan.layout().per_core_batch();
  const int64_t padding = std::clamp(kTaskBytes / example_bytes, records, kMaxExamplesPerTask);
  return {.records = WholeGroups(plan, records), .padding = WholeGroups(plan, padding)};
}

}  // namespace

ScheduledStream::ScheduledStream(std::shared_ptr<const FeedPlan> plan, const StepRange& range,
                                 const StreamMemory& memory, int64_t num_slices)
    : plan_(std::move(plan)),
      range_(range),
      memory_(memory),
      num_slices_(num_slices),
      cost_bytes_(plan_->layout().slice_bytes() + kSliceOverheadBytes),
      task_size_(TaskSizeOf(*plan_)),
      account_(kGuessedCostPerByte * static_cast<double>(plan_->dataset().mean_record_bytes())) {}

StepScheduler::StepScheduler(const StepSchedulerOptions& options)
    : threads_(options.threads),
      buffers_({.budget_bytes = options.memory_budget_bytes,
                .max_sealed = options.max_sealed_slices,
                .overhead_bytes = kSliceOverheadBytes}) {}

absl::Status StepScheduler::Add(const StreamPtr& stream) {
  if (stream->cost_bytes_ > buffers_.budget_bytes()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "one core's slice of a step takes ", stream->cost_bytes_,
        " bytes, more than the server's whole memory budget of ", buffers_.budget_bytes(),
        "; make global_batch smaller, num_cores larger, or raise --memory-budget"));
  }
  streams_.push_back(stream);
  return absl::OkStatus();
}

StepScheduler::Work StepScheduler::Take() {
  Work work;
  while (true) {
    const auto [stream, wanting] = Choose();
    if (stream == nullptr) return work;
    if (!HasMore(*stream) && !Begin(*stream)) {
      work.answer = AnswerOf(*stream);
      if (work.answer.waiter == nullptr) continue;
      work.more = true;
      return work;
    }
    const std::shared_ptr<PendingSlice>& slice = stream->pending_.back();
    const ExampleRange examples = slice->Take(stream->task_size_);
    work.task = Task(stream, slice, examples, clock_.Take(stream->account_, examples.size()));
    work.more = wanting > 1 || HasMore(*stream) || MayBegin(*stream);
    return work;
  }
}

StepScheduler::Answer StepScheduler::Finish(const Task& task, double cost, absl::Status status) {
  ScheduledStream& stream = *task.stream_;
  PendingSlice& slice = *task.slice_;
  examples_made_ += task.examples_.size();
  FairClock::Finish(stream.account_, task.examples_.size(), task.charged_, cost);
  slice.Finish(task.examples_, std::move(status));
  if (!slice.is_done()) return {};
  if (slice.is_dropped()) {
    returning_bytes_ -= stream.cost_bytes_;
    buffers_.Release(slice.TakeBuffer());
    return {};
  }
  if (!slice.error().ok()) {
    // What comes behind it nobody will get.
    while (stream.pending_.back() != task.slice_) TakeBackLast(stream);
    TakeBackLast(stream);
    stream.failed_ = slice.error();
  }
  return AnswerOf(stream);
}

std::optional<Delivery> StepScheduler::Next(ScheduledStream& stream) {
  if (!stream.ended_.ok()) return Delivery(stream.ended_);
  if (stream.pending_.empty()) {
    if (!stream.failed_.ok()) {
      stream.ended_ = stream.failed_;
      return Delivery(stream.ended_);
    }
    if (stream.next_to_begin_ < stream.num_slices_) return std::nullopt;
    return Delivery(std::optional<MadeSlice>());
  }
  PendingSlice& front = *stream.pending_.front();
  if (!front.is_done() || WindowIsFull(stream)) return std::nullopt;
  MadeSlice made = {.step = front.step(), .core = front.core(), .buffer = front.TakeBuffer()};
  stream.pending_.pop_front();
  if (stream.memory_.gives_away) {
    buffers_.GiveAway(made.buffer.size());
    --stream.held_slices_;
  }
  return Delivery(std::move(made));
}

void StepScheduler::Wait(ScheduledStream& stream, DeliveryWaiter waiter) {
  SYSTOLE_CHECK(stream.waiter_ == nullptr);
  stream.waiter_ = std::move(waiter);
}

StepScheduler::Answer StepScheduler::GiveBack(ScheduledStream& stream, AlignedBuffer buffer) {
  if (stream.memory_.gives_away) {
    buffers_.TakeBack(std::move(buffer));
    return {};
  }
  --stream.held_slices_;
  buffers_.Release(std::move(buffer));
  return AnswerOf(stream);
}

StepScheduler::Answer StepScheduler::Cancel(const StreamPtr& stream) {
  streams_.erase(std::remove(streams_.begin(), streams_.end(), stream), streams_.end());
  if (stream->ended_.ok()) stream->ended_ = absl::CancelledError("the stream was cancelled");
  while (!stream->pending_.empty()) TakeBackLast(*stream);
  return AnswerOf(*stream);
}

StepScheduler::Answer StepScheduler::AnswerOf(ScheduledStream& stream) {
  Answer answer;
  if (stream.waiter_ == nullptr) return answer;
  std::optional<Delivery> delivery = Next(stream);
  if (!delivery.has_value()) return answer;
  answer.delivery = *std::move(delivery);
  answer.waiter = std::exchange(stream.waiter_, nullptr);
  return answer;
}

bool StepScheduler::HasMore(const ScheduledStream& stream) {
  return !stream.pending_.empty() && stream.pending_.back()->has_more();
}

bool StepScheduler::MayBegin(const ScheduledStream& stream) const {
  if (!stream.ended_.ok() || !stream.failed_.ok()) return false;
  if (stream.next_to_begin_ >= stream.num_slices_) return false;
  // Two steps ahead, or enough to keep every thread busy, is as much as ever helps.
  const int64_t two_steps = int64_t{2} * stream.range_.num_cores();
  const int64_t ahead = std::max(std::min(two_steps, kMaxSlicesOfTwoSteps), int64_t{4} * threads_);
  if (static_cast<int64_t>(stream.pending_.size()) >= ahead) return false;
  return stream.held_slices_ == 0 || HeldBytes(stream) + stream.cost_bytes_ <= ShareBytes();
}

int64_t StepScheduler::ShareBytes() const {
  return buffers_.budget_bytes() / std::max(kMinBudgetParts, num_streams());
}

int64_t StepScheduler::HeldBytes(const ScheduledStream& stream) {
  return stream.held_slices_ * stream.cost_bytes_;
}

bool StepScheduler::HasRoom(const ScheduledStream& stream) const {
  return buffers_.used_bytes() + stream.cost_bytes_ <= buffers_.budget_bytes();
}

bool StepScheduler::WindowIsFull(const ScheduledStream& stream) {
  const int64_t delivered = stream.held_slices_ - static_cast<int64_t>(stream.pending_.size());
  const int64_t slice_bytes = stream.plan_->layout().slice_bytes();
  return delivered >= 2 && (delivered + 1) * slice_bytes > stream.memory_.window_bytes;
}

// For a thread, memory matters only to those who have to begin a slice. Of these the ones that hold
// nothing go before all others. The others go in turn, and wait behind the one whose turn it is if
// there is no room for it: what is too large for now must not be overtaken for ever. For one that
// holds nothing they keep half of the budget free, and no more: it may be larger than what is ever
// free, and nobody may bring the others down to a slice at a time.
StepScheduler::Choice StepScheduler::Choose() {
  const auto prefer = [](const StreamPtr& stream, const StreamPtr*& best) {
    if (best == nullptr || stream->account_.GoesBefore((*best)->account_)) best = &stream;
  };
  while (true) {
    const StreamPtr* first = nullptr;    // Of those that can go on without more ado.
    const StreamPtr* holder = nullptr;   // Of those that hold something and want to begin a slice,
    const StreamPtr* modest = nullptr;   // and of these the ones that stay below half their share.
    const StreamPtr* starved = nullptr;  // Of those that hold nothing and find no room.
    bool empty_handed = false;           // One that holds nothing can begin a slice.
    int64_t wanting = 0;
    for (const StreamPtr& stream : streams_) {
      const bool has_more = HasMore(*stream);
      const bool may_begin = !has_more && MayBegin(*stream);
      const bool can = has_more || (may_begin && HasRoom(*stream));
      if (can && !stream->can_work_) clock_.Join(stream->account_);
      stream->can_work_ = can;
      if (can) ++wanting;
      if (has_more) {
        prefer(stream, first);
      } else if (may_begin && stream->held_slices_ > 0) {
        prefer(stream, holder);
        if (HeldBytes(*stream) + stream->cost_bytes_ <= ShareBytes() / 2) prefer(stream, modest);
      } else if (may_begin) {
        prefer(stream, can ? first : starved);
        empty_handed = empty_handed || can;
      }
    }
    if (starved != nullptr) {
      if (TakeBackLookAhead(**starved)) continue;
      holder = modest;
    }
    if (holder != nullptr && !empty_handed && HasRoom(**holder)) prefer(*holder, first);
    return {.stream = first == nullptr ? nullptr : *first, .wanting = wanting};
  }
}

bool StepScheduler::Begin(ScheduledStream& stream) {
  const FeedPlan& plan = *stream.plan_;
  absl::StatusOr<std::optional<AlignedBuffer>> buffer =
      buffers_.TryAcquire(plan.layout().slice_bytes(), stream.memory_.kind);
  if (!buffer.ok()) {
    // The system has less memory than the budget promises: this stream ends, others go on.
    stream.failed_ = buffer.status();
    return false;
  }
  SYSTOLE_CHECK(buffer->has_value());
  const StepRange& range = stream.range_;
  const int64_t step = range.first_step + stream.next_to_begin_ / range.num_cores() * range.stride;
  const int core = range.core_begin + static_cast<int>(stream.next_to_begin_ % range.num_cores());
  const int64_t examples = plan.layout().per_core_batch();
  // Padding in a group that has a record is made with it: a task has whole groups.
  const int64_t records = WholeGroups(plan, plan.order().RecordsOnCore(step, core));
  stream.pending_.push_back(
      std::make_shared<PendingSlice>(step, core, examples, records, **std::move(buffer)));
  ++stream.next_to_begin_;
  ++stream.held_slices_;
  return true;
}

// The budget is used up and a stream has nothing at all. Its turn would never come if all others
// wait too, as trainers of one job wait for the slowest. So the streams that are furthest over
// their share, which shrank when others came, give their last slices back; over half of it for one
// that needs more than a share. They are made again in their turn.
bool StepScheduler::TakeBackLookAhead(const ScheduledStream& starved) {
  const int64_t keep_bytes = starved.cost_bytes_ > ShareBytes() ? ShareBytes() / 2 : ShareBytes();
  const auto is_victim = [&](const ScheduledStream& stream) {
    // One whose consumer waits for a slice moves on by itself.
    const bool moves = stream.waiter_ != nullptr && !WindowIsFull(stream);
    return stream.ended_.ok() && !moves && !stream.pending_.empty() && stream.held_slices_ > 1 &&
           HeldBytes(stream) > keep_bytes;
  };
  const auto enough = [&] {
    return buffers_.used_bytes() - returning_bytes_ + starved.cost_bytes_ <=
           buffers_.budget_bytes();
  };
  const int64_t used_before = buffers_.used_bytes();
  while (!enough()) {
    ScheduledStream* victim = nullptr;
    for (const StreamPtr& stream : streams_) {
      if (!is_victim(*stream)) continue;
      if (victim == nullptr || HeldBytes(*stream) > HeldBytes(*victim)) victim = stream.get();
    }
    if (victim == nullptr) break;
    while (!enough() && is_victim(*victim)) TakeBackLast(*victim);
  }
  return buffers_.used_bytes() < used_before;
}

void StepScheduler::TakeBackLast(ScheduledStream& stream) {
  Drop(*stream.pending_.back(), stream.cost_bytes_);
  stream.pending_.pop_back();
  --stream.next_to_begin_;
  --stream.held_slices_;
  stream.failed_ = absl::OkStatus();  // It will be found again.
}

void StepScheduler::Drop(PendingSlice& slice, int64_t cost_bytes) {
  slice.Drop();
  if (slice.is_done()) {
    buffers_.Release(slice.TakeBuffer());
  } else {
    returning_bytes_ += cost_bytes;
  }
}

}  // namespace systole
