#include "core/engine/step_scheduler.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "core/engine/task_size.h"
#include "core/status/check.h"

namespace systole {
namespace {

// What making an example costs for each byte of its record, and for each value that is computed, in
// nanoseconds: a guess, until the first task of a stream is done.
constexpr double kGuessedCostPerByte = 10;
constexpr double kGuessedCostPerElement = 1;

// No stream may hold more than this part of the budget, so that one client that stopped reading
// does not starve the others.
constexpr int64_t kMinBudgetParts = 4;

// No more than this part of the budget is kept for streams that are behind others, and no more
// slices.
constexpr int64_t kKeptBudgetParts = 4;
constexpr size_t kMaxKeptSlices = 4096;

// Slices of two steps that a stream may have begun. More would not keep a client busier.
constexpr int64_t kMaxSlicesOfTwoSteps = 1024;

}  // namespace

ScheduledStream::ScheduledStream(std::shared_ptr<const FeedPlan> plan, const StepRange& range,
                                 const StreamMemory& memory, int64_t num_slices, std::string peer,
                                 std::shared_ptr<ValueCache> cache)
    : plan_(std::move(plan)),
      range_(range),
      memory_(memory),
      num_slices_(num_slices),
      peer_(std::move(peer)),
      cache_(std::move(cache)),
      cost_bytes_(plan_->layout().slice_bytes() + kSliceOverheadBytes),
      task_size_(TaskSizeOf(*plan_)) {}

std::pair<int64_t, int> ScheduledStream::PlaceOf(int64_t number) const {
  return {range_.first_step + number / range_.num_cores() * range_.stride,
          range_.core_begin + static_cast<int>(number % range_.num_cores())};
}

bool ScheduledStream::WillComeTo(int64_t step, int core) const {
  if (!ended_.ok() || !failed_.ok()) return false;
  if (core < range_.core_begin || core >= range_.core_end) return false;
  if (step < range_.first_step || (step - range_.first_step) % range_.stride != 0) return false;
  const int64_t number =
      (step - range_.first_step) / range_.stride * range_.num_cores() + (core - range_.core_begin);
  return number >= next_to_begin_ && number < num_slices_;
}

StepScheduler::StepScheduler(const StepSchedulerOptions& options)
    : threads_(options.threads),
      share_slices_(options.share_slices),
      buffers_({.budget_bytes = options.memory_budget_bytes,
                .max_sealed = options.max_sealed_slices,
                .overhead_bytes = kSliceOverheadBytes}),
      clock_(options.turn) {}

absl::Status StepScheduler::Add(const StreamPtr& stream) {
  if (stream->cost_bytes_ > buffers_.budget_bytes()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "one core's slice of a step takes ", stream->cost_bytes_,
        " bytes, more than the whole memory budget of ", buffers_.budget_bytes(),
        " for slices; make global_batch smaller, num_cores larger, or raise --memory-budget"));
  }
  stream->account_ = clock_.Open(
      stream->peer_,
      kGuessedCostPerByte * static_cast<double>(stream->plan_->dataset().mean_record_bytes()) +
          kGuessedCostPerElement * static_cast<double>(stream->plan_->example_elements()));
  streams_.push_back(stream);
  return absl::OkStatus();
}

void StepScheduler::CountOverdue(const Task& task, bool overdue) {
  int& tasks = overdue_[task.stream_->peer_];
  tasks += overdue ? 1 : -1;
  if (tasks == 0) overdue_.erase(task.stream_->peer_);
}

StepScheduler::Work StepScheduler::Take(bool beside) {
  Work work;
  while (true) {
    const Choice choice = Choose(beside);
    const StreamPtr& stream = choice.stream;
    if (stream == nullptr) return work;
    if (!HasMore(*stream)) Begin(*stream);
    if (!HasMore(*stream)) {
      // It failed, or joined a slice of which nothing is left to be handed out.
      work.answer = AnswerOf(*stream);
      if (work.answer.waiter == nullptr) continue;
      work.more = true;
      return work;
    }
    // What is nearest to be delivered, first. Of a thousand small slices none is looked at, unless
    // something was given back.
    const auto with_more = stream->returned_ == 0
                               ? std::prev(stream->pending_.end())
                               : std::find_if(stream->pending_.begin(), stream->pending_.end(),
                                              [](const auto& slice) { return slice->has_more(); });
    const std::shared_ptr<SharedSlice> slice = *with_more;
    ExampleRun run;
    ChangeRuns(*slice, [&] { run = slice->Take(stream->task_size_); });
    work.task = Task(stream, slice, std::move(run));
    work.task->charged_ = clock_.Take(stream->account_, work.task->units());
    work.more = choice.wanting > 1 || HasMore(*stream) || MayBegin(*stream);
    return work;
  }
}

template <typename Change>
void StepScheduler::ChangeRuns(SharedSlice& slice, Change change) {
  const int64_t before = slice.num_returned();
  change();
  for (ScheduledStream* const stream : slice.makers_) {
    stream->returned_ += slice.num_returned() - before;
  }
}

StepScheduler::Answers StepScheduler::Return(const Task& task, ExampleRun run, double cost) {
  const int64_t done = std::max<int64_t>(1, run.done - task.run_.done);
  FairClock::Finish(task.stream_->account_, done, task.charged_, cost);
  SharedSlice& slice = *task.slice_;
  ChangeRuns(slice, [&] { slice.Return(std::move(run)); });
  return Settle(task);  // What nobody wants any more was dropped.
}

StepScheduler::Answers StepScheduler::Finish(const Task& task, const ExampleRun& run, double cost) {
  SharedSlice& slice = *task.slice_;
  if (!slice.is_dropped()) examples_made_ += task.run_.examples.size();
  FairClock::Finish(task.stream_->account_, task.units(), task.charged_, cost);
  ChangeRuns(slice, [&] { slice.Finish(run); });
  return Settle(task);
}

StepScheduler::Answers StepScheduler::Settle(const Task& task) {
  SharedSlice& slice = *task.slice_;
  if (!slice.is_done()) return {};
  if (slice.is_dropped()) {
    returning_bytes_ -= task.stream_->cost_bytes_;
    buffers_.Release(slice.TakeBuffer());
    return {};
  }
  if (!slice.error().ok()) shared_.erase(slice.key());
  // Those that fail leave it meanwhile.
  const std::vector<ScheduledStream*> makers = std::exchange(slice.makers_, {});
  Answers answers;
  for (ScheduledStream* const stream : makers) {
    Answer answer = slice.error().ok() ? AnswerOf(*stream) : FailAt(*stream, slice, slice.error());
    if (answer.waiter != nullptr) answers.push_back(std::move(answer));
  }
  return answers;
}

StepScheduler::Answer StepScheduler::FailAt(ScheduledStream& stream, const SharedSlice& slice,
                                            const absl::Status& status) {
  // What comes behind it nobody will get.
  while (stream.pending_.back().get() != &slice) TakeBackLast(stream);
  TakeBackLast(stream);
  stream.failed_ = status;
  return AnswerOf(stream);
}

StepScheduler::Answers StepScheduler::Abandon(const Task& task, const absl::Status& status) {
  Answers answers;
  // Those that fail leave it meanwhile.
  for (ScheduledStream* const stream : std::vector(task.slice_->makers_)) {
    Answer answer = FailAt(*stream, *task.slice_, status);
    if (answer.waiter != nullptr) answers.push_back(std::move(answer));
  }
  return answers;
}

StepScheduler::Answers StepScheduler::SetBlocked(Blocked blocked) {
  Answers answers;
  for (const StreamPtr& stream : streams_) {
    const std::optional<absl::Status> status = blocked(*stream->plan_);
    stream->blocked_ = status.has_value();
    if (!stream->blocked_ || status->ok() || !stream->failed_.ok()) continue;
    const auto all_done = [&] {
      return std::all_of(stream->pending_.begin(), stream->pending_.end(),
                         [](const auto& slice) { return slice->is_done(); });
    };
    while (!all_done()) TakeBackLast(*stream);
    if (stream->next_to_begin_ < stream->num_slices_) stream->failed_ = *status;
    Answer answer = AnswerOf(*stream);
    if (answer.waiter != nullptr) answers.push_back(std::move(answer));
  }
  return answers;
}

std::optional<Delivery> StepScheduler::Next(ScheduledStream& stream) {
  if (!stream.ended_.ok()) return Delivery(stream.ended_);
  JoinAhead(stream);
  if (stream.pending_.empty()) {
    if (!stream.failed_.ok()) {
      stream.ended_ = stream.failed_;
      return Delivery(stream.ended_);
    }
    if (stream.next_to_begin_ < stream.num_slices_) return std::nullopt;
    return Delivery(std::optional<std::shared_ptr<SharedSlice>>());
  }
  if (!stream.pending_.front()->is_done() || WindowIsFull(stream)) return std::nullopt;
  std::shared_ptr<SharedSlice> made = std::move(stream.pending_.front());
  stream.pending_.pop_front();
  if (stream.memory_.gives_away) {
    buffers_.GiveAway(made->buffer().size());
    --stream.held_slices_;
  }
  return Delivery(std::move(made));
}

bool StepScheduler::Wait(ScheduledStream& stream, DeliveryWaiter waiter) {
  SYSTOLE_CHECK(stream.waiter_ == nullptr);
  stream.waiter_ = std::move(waiter);
  stream.gave_way_ = false;
  return IsEmptyHanded(stream);
}

StepScheduler::Answer StepScheduler::GiveBack(ScheduledStream& stream,
                                              const std::shared_ptr<SharedSlice>& slice) {
  Leave(stream, slice);
  return AnswerOf(stream);
}

StepScheduler::Answer StepScheduler::Cancel(const StreamPtr& stream) {
  if (const auto known = std::find(streams_.begin(), streams_.end(), stream);
      known != streams_.end()) {
    streams_.erase(known);
    clock_.Close(stream->account_);
  }
  if (stream->ended_.ok()) stream->ended_ = absl::CancelledError("the stream was cancelled");
  while (!stream->pending_.empty()) TakeBackLast(*stream);
  kept_may_be_unwanted_ = true;
  const bool others = std::any_of(streams_.begin(), streams_.end(), [&](const StreamPtr& other) {
    return other->plan_ == stream->plan_;
  });
  if (!others) ForgetUnwanted();
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
  return stream.returned_ > 0 || (!stream.pending_.empty() && stream.pending_.back()->has_more());
}

bool StepScheduler::MayBegin(const ScheduledStream& stream) const {
  if (!stream.ended_.ok() || !stream.failed_.ok()) return false;
  if (stream.next_to_begin_ >= stream.num_slices_ || stream.gave_way_) return false;
  // Two steps ahead, or enough to keep every thread busy, is as much as ever helps.
  const int64_t two_steps = int64_t{2} * stream.range_.num_cores();
  const int64_t ahead = std::max(std::min(two_steps, kMaxSlicesOfTwoSteps), int64_t{4} * threads_);
  if (static_cast<int64_t>(stream.pending_.size()) >= ahead) return false;
  return stream.held_slices_ == 0 || HeldBytes(stream) + stream.cost_bytes_ <= ShareBytes(stream);
}

int64_t StepScheduler::ShareBytes(const ScheduledStream& stream) const {
  const int64_t parts = clock_.peers() * stream.account_.peer_streams();
  return std::min(stream.memory_.ahead_bytes,
                  buffers_.budget_bytes() / std::max(kMinBudgetParts, parts));
}

int64_t StepScheduler::HeldBytes(const ScheduledStream& stream) {
  return stream.held_slices_ * stream.cost_bytes_;
}

bool StepScheduler::HasRoom(const ScheduledStream& stream) const {
  return buffers_.used_bytes() - kept_bytes_ + stream.cost_bytes_ <= buffers_.budget_bytes();
}

bool StepScheduler::IsEmptyHanded(const ScheduledStream& stream) {
  return stream.held_slices_ == 0 && (!stream.memory_.gives_away || stream.waiter_ != nullptr);
}

bool StepScheduler::GivesWay(const ScheduledStream& stream, const ScheduledStream& starved) {
  return stream.memory_.gives_away && stream.waiter_ == nullptr && starved.memory_.gives_away;
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
StepScheduler::Choice StepScheduler::Choose(bool beside) {
  const auto is_left_out = [&](const ScheduledStream& stream) {
    return beside && overdue_.contains(stream.peer_);
  };
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
      if (is_left_out(*stream)) continue;
      const bool can = !stream->blocked_ &&
                       (HasMore(*stream) ||
                        (MayBegin(*stream) && (HasRoom(*stream) || FindNext(*stream) != nullptr)));
      stream->can_work_ = can;
      if (can) clock_.SetWants(stream->account_, true);
      if (can) ++wanting;
    }
    // Behind those that want: a peer of which one stream begins to want when another one ends
    // wanted all the time.
    for (const StreamPtr& stream : streams_) {
      if (is_left_out(*stream)) continue;
      if (!stream->can_work_) clock_.SetWants(stream->account_, false);
      if (stream->blocked_) continue;
      const bool can = stream->can_work_;
      const bool has_more = HasMore(*stream);
      const bool may_begin = !has_more && MayBegin(*stream);
      if (has_more) {
        prefer(stream, first);
      } else if (may_begin && !IsEmptyHanded(*stream)) {
        prefer(stream, holder);
        if (HeldBytes(*stream) + stream->cost_bytes_ <= ShareBytes(*stream) / 2) {
          prefer(stream, modest);
        }
      } else if (may_begin) {
        prefer(stream, can ? first : starved);
        empty_handed = empty_handed || can;
      }
    }
    if (starved != nullptr) {
      if (TakeBackLookAhead(**starved)) continue;
      holder = modest;
    }
    if (holder != nullptr && !empty_handed && (*holder)->can_work_) prefer(*holder, first);
    return {.stream = first == nullptr ? nullptr : *first, .wanting = wanting};
  }
}

void StepScheduler::Begin(ScheduledStream& stream) {
  if (std::shared_ptr<SharedSlice> slice = FindNext(stream); slice != nullptr) {
    Hold(stream, std::move(slice));
    return;
  }
  MakeRoom(stream.cost_bytes_);
  absl::StatusOr<std::optional<AlignedBuffer>> buffer =
      buffers_.TryAcquire(stream.plan_->layout().slice_bytes(), stream.memory_.kind);
  if (!buffer.ok()) {
    // The system has less memory than the budget promises: this stream ends, others go on.
    stream.failed_ = buffer.status();
    return;
  }
  SYSTOLE_CHECK(buffer->has_value());
  const auto [step, core] = stream.PlaceOf(stream.next_to_begin_);
  const FeedPlan& plan = *stream.plan_;
  // Padding in a group that has a record is made with it: a task has whole groups.
  const int64_t records = WholeGroups(plan, plan.order().RecordsOnCore(step, core));
  auto slice = std::make_shared<SharedSlice>(stream.plan_, stream.memory_.kind, step, core, records,
                                             **std::move(buffer));
  if (Shares(stream)) shared_.emplace(slice->key(), slice);
  Hold(stream, std::move(slice));
}

bool StepScheduler::Shares(const ScheduledStream& stream) const {
  // A consumer that keeps its slices may also write to them.
  return share_slices_ && !stream.memory_.gives_away;
}

std::shared_ptr<SharedSlice> StepScheduler::FindNext(const ScheduledStream& stream) const {
  if (!Shares(stream) || shared_.empty()) return nullptr;
  const auto [step, core] = stream.PlaceOf(stream.next_to_begin_);
  const auto found = shared_.find({stream.plan_.get(), step, core, stream.memory_.kind});
  return found == shared_.end() ? nullptr : found->second;
}

void StepScheduler::JoinAhead(ScheduledStream& stream) {
  while (MayBegin(stream) && !HasMore(stream)) {
    std::shared_ptr<SharedSlice> slice = FindNext(stream);
    if (slice == nullptr) return;
    Hold(stream, std::move(slice));
  }
}

void StepScheduler::Hold(ScheduledStream& stream, std::shared_ptr<SharedSlice> slice) {
  if (slice->kept_.has_value()) Unkeep(*slice);
  if (slice->holders_++ > 0 || slice->is_done()) ++slices_shared_;
  if (!slice->is_done()) {
    slice->makers_.push_back(&stream);
    stream.returned_ += slice->num_returned();
  }
  stream.pending_.push_back(std::move(slice));
  ++stream.next_to_begin_;
  ++stream.held_slices_;
}

// The budget is used up and a stream has nothing at all. Its turn would never come if all others
// wait too, as trainers of one job wait for the slowest. So the streams that are furthest over
// their share, which shrank when others came, give their last slices back; over half of it for one
// that needs more than a share. They are made again in their turn. Of the streams of this process
// those that nobody waits for give all that they have to one that somebody waits for, and begin
// nothing until they are asked: a feed that is never read must not stop another.
bool StepScheduler::TakeBackLookAhead(const ScheduledStream& starved) {
  const bool needs_more = starved.cost_bytes_ > ShareBytes(starved);
  const auto is_victim = [&](const ScheduledStream& stream) {
    const int64_t keep_bytes = ShareBytes(stream) / (needs_more ? 2 : 1);
    // One whose consumer waits for a slice moves on by itself.
    const bool moves = stream.waiter_ != nullptr && !WindowIsFull(stream);
    const bool has_too_much = stream.held_slices_ > 1 && HeldBytes(stream) > keep_bytes;
    return stream.ended_.ok() && !moves && !stream.pending_.empty() &&
           (has_too_much || GivesWay(stream, starved));
  };
  const auto enough = [&] {
    return buffers_.used_bytes() - kept_bytes_ - returning_bytes_ + starved.cost_bytes_ <=
           buffers_.budget_bytes();
  };
  const int64_t used_before = buffers_.used_bytes() - kept_bytes_;
  while (!enough()) {
    ScheduledStream* victim = nullptr;
    for (const StreamPtr& stream : streams_) {
      if (!is_victim(*stream)) continue;
      if (victim == nullptr || HeldBytes(*stream) > HeldBytes(*victim)) victim = stream.get();
    }
    if (victim == nullptr) break;
    while (!enough() && is_victim(*victim)) TakeBackLast(*victim);
    victim->gave_way_ = victim->memory_.gives_away && victim->held_slices_ == 0;
  }
  return buffers_.used_bytes() - kept_bytes_ < used_before;
}

void StepScheduler::TakeBackLast(ScheduledStream& stream) {
  const std::shared_ptr<SharedSlice> slice = std::move(stream.pending_.back());
  stream.pending_.pop_back();
  --stream.next_to_begin_;
  stream.failed_ = absl::OkStatus();  // It will be found again.
  Leave(stream, slice);
}

void StepScheduler::Leave(ScheduledStream& stream, const std::shared_ptr<SharedSlice>& slice) {
  --stream.held_slices_;
  if (!slice->is_done()) stream.returned_ -= slice->num_returned();
  std::vector<ScheduledStream*>& makers = slice->makers_;
  makers.erase(std::remove(makers.begin(), makers.end(), &stream), makers.end());
  if (--slice->holders_ > 0) return;
  if (slice->is_done()) {
    KeepOrRelease(slice);
    return;
  }
  slice->Drop();
  shared_.erase(slice->key());
  if (slice->is_done()) {
    buffers_.Release(slice->TakeBuffer());
  } else {
    returning_bytes_ += stream.cost_bytes_;
  }
}

bool StepScheduler::IsWanted(const SharedSlice& slice) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const StreamPtr& stream) {
    return stream->plan_ == slice.plan_ && stream->memory_.kind == slice.kind_ &&
           stream->WillComeTo(slice.step(), slice.core());
  });
}

void StepScheduler::KeepOrRelease(const std::shared_ptr<SharedSlice>& slice) {
  const int64_t cost = slice->cost_bytes();
  const auto found = shared_.find(slice->key());
  const bool shared = found != shared_.end() && found->second == slice;
  const auto fits = [&] {
    return kept_bytes_ + cost <= buffers_.budget_bytes() / kKeptBudgetParts &&
           kept_.size() < kMaxKeptSlices;
  };
  if (!shared || !slice->error().ok() || !IsWanted(*slice)) {
    Release(*slice);
    return;
  }
  if (!fits() && kept_may_be_unwanted_) ForgetUnwanted();
  if (!fits()) {
    // The streams that are behind come to those first that are kept already.
    Release(*slice);
    return;
  }
  kept_bytes_ += cost;
  slice->kept_ = kept_.insert(kept_.end(), slice);
}

void StepScheduler::ForgetUnwanted() {
  kept_may_be_unwanted_ = false;
  for (auto it = kept_.begin(); it != kept_.end();) {
    const std::shared_ptr<SharedSlice> slice = *it++;
    if (!IsWanted(*slice)) Release(*slice);
  }
}

void StepScheduler::MakeRoom(int64_t bytes) {
  while (!kept_.empty() && buffers_.used_bytes() + bytes > buffers_.budget_bytes()) {
    Release(*kept_.back());
  }
}

void StepScheduler::Unkeep(SharedSlice& slice) {
  kept_bytes_ -= slice.cost_bytes();
  kept_.erase(*std::exchange(slice.kept_, std::nullopt));
}

void StepScheduler::Release(SharedSlice& slice) {
  buffers_.Release(slice.TakeBuffer());
  if (const auto found = shared_.find(slice.key());
      found != shared_.end() && found->second.get() == &slice) {
    const std::shared_ptr<SharedSlice> last = found->second;  // What follows needs it.
    shared_.erase(found);
    if (slice.kept_.has_value()) Unkeep(slice);
  }
}

}  // namespace systole
