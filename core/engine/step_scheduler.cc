#include "core/engine/step_scheduler.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/engine/task_size.h"
#include "core/memory/aligned_buffer.h"

namespace systole {
namespace {

// At most 1 / kKeptBudgetParts of the budget and kMaxKeptSlices slices are kept for streams that
// are behind others.
constexpr int64_t kKeptBudgetParts = 4;
constexpr size_t kMaxKeptSlices = 4096;

// Calls `change`, which takes runs of the slice or gives them back. Then tells the streams that
// make the slice how the number of its returned runs has changed.
template <typename Change>
void ChangeRuns(SharedSlice& slice, absl::Duration now, Change change) {
  const int64_t before = slice.num_returned();
  change();
  slice.times().SetReads(slice.only_reads(), now);
  for (ScheduledStream* const stream : slice.makers()) {
    stream->CountReturned(slice.num_returned() - before);
  }
}

}  // namespace

StepScheduler::StepScheduler(const StepSchedulerOptions& options)
    : threads_(options.threads),
      share_slices_(options.share_slices),
      queue_(options.turn),
      budget_(options.memory_budget_bytes, options.max_sealed_slices),
      shelf_(options.memory_budget_bytes / kKeptBudgetParts, kMaxKeptSlices) {}

absl::Status StepScheduler::Add(const StreamPtr& stream) {
  if (stream->cost_bytes() > budget_.budget_bytes()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "one core's slice of a step takes ", stream->cost_bytes(),
        " bytes, more than the whole memory budget of ", budget_.budget_bytes(),
        " for slices; make global_batch smaller, num_cores larger, or raise --memory-budget"));
  }
  stream->Open(queue_.clock());
  streams_.push_back(stream);
  return absl::OkStatus();
}

StepScheduler::Work StepScheduler::Take(bool beside) {
  Work work;
  while (true) {
    const Choice choice =
        Choose([&](ScheduledStream& stream) { return MakerCandidate(stream, beside); },
               FairQueue::Accounts::kChange);
    const StreamPtr& stream = choice.stream;
    if (stream == nullptr) return work;
    if (!stream->has_more()) Begin(*stream);
    if (!stream->has_more()) {
      // The stream failed, or joined a slice that has no run to hand out.
      work.answer = AnswerOf(*stream);
      if (work.answer.waiter == nullptr) continue;
      work.more = true;
      return work;
    }
    const SharedSlicePtr slice = stream->FirstWithMore();
    ExampleRun run;
    ChangeRuns(*slice, now_, [&] { run = slice->Take(stream->task_size()); });
    const double charged = stream->account().Take(run.units_left());
    work.task = SliceTask(stream, slice, std::move(run), charged);
    work.more =
        choice.wanting > 1 || stream->has_more() || (!stream->reads_ahead() && MayBegin(*stream));
    return work;
  }
}

StepScheduler::Work StepScheduler::TakeToRead(MayRead may_read) {
  Work work;
  while (true) {
    const Choice choice =
        Choose([&](ScheduledStream& stream) { return ReaderCandidate(stream, may_read); },
               FairQueue::Accounts::kKeep);
    const StreamPtr& stream = choice.stream;
    if (stream == nullptr) return work;
    if (!stream->has_unread()) Begin(*stream);
    if (stream->has_unread()) {
      const SharedSlicePtr slice = stream->pending().back();
      work.task = SliceTask(stream, slice, slice->TakeToRead(stream->task_size()), /*charged=*/0);
      slice->times().SetReads(slice->only_reads(), now_);
      return work;
    }
    // The stream failed, or its slice is done or has only padding. Padding needs no read.
    if (stream->has_more()) work.more = true;
    work.answer = AnswerOf(*stream);
    if (work.answer.waiter != nullptr) return work;
  }
}

bool StepScheduler::TakeReadsChanged() {
  if (std::exchange(dropped_slices_, false)) return true;
  return std::any_of(streams_.begin(), streams_.end(), [this](const StreamPtr& stream) {
    if (!stream->is_far() || stream->is_blocked()) return false;
    return stream->has_unread() ||
           (stream->reads_ahead() && !stream->has_untaken() && MayBegin(*stream));
  });
}

void StepScheduler::ReadFirst(const SliceTask& task) {
  task.stream().SetWarm(false);
  task.stream().account().Undo(task.charged());
  task.slice().ReadFirst();
  task.slice().times().SetReads(task.slice().only_reads(), now_);
}

StepScheduler::Answers StepScheduler::Arrive(const SliceTask& task, ExampleRun run, bool warm) {
  SharedSlice& slice = task.slice();
  task.stream().SetWarm(warm);
  ChangeRuns(slice, now_, [&] { slice.ReturnRead(std::move(run)); });
  return Settle(task);  // The slice may be done now, if no stream wants it any more.
}

StepScheduler::Answers StepScheduler::Return(const SliceTask& task, ExampleRun run, double cost) {
  const int64_t done = std::max<int64_t>(1, run.done - task.run().done);
  task.stream().account().Finish(done, task.charged(), cost);
  SharedSlice& slice = task.slice();
  ChangeRuns(slice, now_, [&] { slice.Return(std::move(run)); });
  return Settle(task);  // The slice may be done now, if no stream wants it any more.
}

StepScheduler::Answers StepScheduler::Finish(const SliceTask& task, const ExampleRun& run,
                                             double cost) {
  SharedSlice& slice = task.slice();
  if (!slice.is_dropped()) examples_made_ += task.examples().size();
  task.stream().account().Finish(task.run().units_left(), task.charged(), cost);
  ChangeRuns(slice, now_, [&] { slice.Finish(run); });
  return Settle(task);
}

StepScheduler::Answers StepScheduler::Settle(const SliceTask& task) {
  SharedSlice& slice = task.slice();
  if (!slice.is_done()) return {};
  if (slice.is_dropped()) {
    budget_.ReturnLate(slice.TakeBuffer());
    return {};
  }
  slice.times().Done(now_);
  if (!slice.error().ok()) shelf_.Remove(slice);
  // TakeMakers() comes before the loop, because a stream that fails leaves the slice's makers.
  const std::vector<ScheduledStream*> makers = slice.TakeMakers();
  Answers answers;
  for (ScheduledStream* const stream : makers) {
    Answer answer = slice.error().ok() ? AnswerOf(*stream) : FailAt(*stream, slice, slice.error());
    if (answer.waiter != nullptr) answers.push_back(std::move(answer));
  }
  return answers;
}

StepScheduler::Answer StepScheduler::FailAt(ScheduledStream& stream, const SharedSlice& slice,
                                            const absl::Status& status) {
  // The stream fails at `slice`, so its consumer will not get the slices after that one.
  while (stream.pending().back().get() != &slice) TakeBackLast(stream);
  TakeBackLast(stream);
  stream.Fail(status);
  return AnswerOf(stream);
}

StepScheduler::Answers StepScheduler::Abandon(const SliceTask& task, const absl::Status& status) {
  const SharedSlice& slice = task.slice();
  Answers answers;
  // The loop is over a copy, because a stream that fails leaves the slice's makers.
  for (ScheduledStream* const stream : std::vector(slice.makers().begin(), slice.makers().end())) {
    Answer answer = FailAt(*stream, slice, status);
    if (answer.waiter != nullptr) answers.push_back(std::move(answer));
  }
  return answers;
}

StepScheduler::Answers StepScheduler::SetBlocked(Blocked blocked) {
  Answers answers;
  for (const StreamPtr& stream : streams_) {
    const std::optional<absl::Status> status = blocked(*stream->plan());
    stream->SetBlocked(status.has_value());
    if (!status.has_value() || status->ok() || !stream->failed().ok()) continue;
    const auto all_done = [&] {
      return std::all_of(stream->pending().begin(), stream->pending().end(),
                         [](const SharedSlicePtr& slice) { return slice->is_done(); });
    };
    while (!all_done()) TakeBackLast(*stream);
    if (stream->has_next()) stream->Fail(*status);
    Answer answer = AnswerOf(*stream);
    if (answer.waiter != nullptr) answers.push_back(std::move(answer));
  }
  return answers;
}

std::optional<Delivery> StepScheduler::Next(ScheduledStream& stream) {
  if (!stream.ended().ok()) return Delivery(stream.ended());
  JoinAhead(stream);
  if (stream.pending().empty()) {
    if (!stream.failed().ok()) {
      stream.End(stream.failed());
      return Delivery(stream.ended());
    }
    if (stream.has_next()) return std::nullopt;
    return Delivery(std::optional<SharedSlicePtr>());
  }
  if (!stream.pending().front()->is_done() || stream.holdings().window_is_full()) {
    return std::nullopt;
  }
  SharedSlicePtr made = stream.Deliver(now_);
  if (stream.memory().gives_away) budget_.GiveAway(made->buffer());
  return Delivery(std::move(made));
}

bool StepScheduler::Wait(ScheduledStream& stream, DeliveryWaiter waiter) {
  stream.Wait(std::move(waiter), now_);
  return SliceBudget::IsEmptyHanded(stream.holdings(), /*waits=*/true);
}

StepScheduler::Answer StepScheduler::GiveBack(ScheduledStream& stream,
                                              const SharedSlicePtr& slice) {
  stream.Drop(*slice);
  ReleaseIfLeft(slice);
  return AnswerOf(stream);
}

StepScheduler::Answer StepScheduler::Cancel(const StreamPtr& stream) {
  if (std::erase(streams_, stream) > 0) stream->account().Close();
  if (stream->ended().ok()) stream->End(absl::CancelledError("the stream was cancelled"));
  while (!stream->pending().empty()) TakeBackLast(*stream);
  kept_may_be_unwanted_ = true;
  const bool others = std::any_of(streams_.begin(), streams_.end(), [&](const StreamPtr& other) {
    return other->plan() == stream->plan();
  });
  if (!others) ForgetUnwanted();
  return AnswerOf(*stream);
}

StepScheduler::Answer StepScheduler::AnswerOf(ScheduledStream& stream) {
  Answer answer;
  if (!stream.waits()) return answer;
  std::optional<Delivery> delivery = Next(stream);
  if (!delivery.has_value()) return answer;
  answer.delivery = *std::move(delivery);
  answer.waiter = stream.TakeWaiter();
  return answer;
}

SliceBudget::Claim StepScheduler::ClaimOf(const ScheduledStream& stream) const {
  const int64_t parts = queue_.clock().peers() * stream.account().peer_streams();
  return {.holdings = stream.holdings(),
          .share_bytes = budget_.ShareBytes(stream.holdings(), parts),
          .waits = stream.waits()};
}

bool StepScheduler::MayBegin(const ScheduledStream& stream, const SliceBudget::Claim& claim) const {
  return stream.is_good() && stream.has_next() && !stream.gave_way() &&
         SliceBudget::MayBegin(claim, threads_);
}

bool StepScheduler::MayBegin(const ScheduledStream& stream) const {
  // A cancelled stream has no claim, because its account is closed.
  return stream.is_good() && MayBegin(stream, ClaimOf(stream));
}

FairQueue::Candidate StepScheduler::MakerCandidate(ScheduledStream& stream, bool beside) const {
  FairQueue::Candidate candidate = {.account = &stream.account()};
  candidate.left_out = beside && queue_.IsOverdue(stream.peer());
  if (candidate.left_out || stream.is_blocked()) return candidate;
  candidate.has_more = stream.has_more();
  if (!candidate.has_more) LookForRoom(stream, /*begins=*/!stream.reads_ahead(), candidate);
  return candidate;
}

FairQueue::Candidate StepScheduler::ReaderCandidate(ScheduledStream& stream,
                                                    MayRead may_read) const {
  FairQueue::Candidate candidate = {.account = &stream.account()};
  if (stream.is_blocked() || !may_read(*stream.plan())) return candidate;
  candidate.has_more = stream.has_unread();
  if (!candidate.has_more) LookForRoom(stream, stream.reads_ahead(), candidate);
  return candidate;
}

void StepScheduler::LookForRoom(ScheduledStream& stream, bool begins,
                                FairQueue::Candidate& candidate) const {
  if (stream.has_untaken()) return;
  const SliceBudget::Claim claim = ClaimOf(stream);
  candidate.may_begin = MayBegin(stream, claim);
  if (!candidate.may_begin) return;
  candidate.has_room =
      budget_.HasRoom(stream.cost_bytes(), shelf_.kept_bytes()) || FindNext(stream) != nullptr;
  if (candidate.has_room && !begins) candidate.may_begin = false;
  candidate.empty_handed = SliceBudget::IsEmptyHanded(stream.holdings(), stream.waits());
  candidate.modest = SliceBudget::IsModest(claim);
}

StepScheduler::Choice StepScheduler::Choose(CandidateOf candidate_of,
                                            FairQueue::Accounts accounts) {
  while (true) {
    candidates_.clear();
    for (const StreamPtr& stream : streams_) candidates_.push_back(candidate_of(*stream));
    const FairQueue::Choice choice = FairQueue::Choose(candidates_, accounts);
    if (choice.starved.has_value() && TakeBackLookAhead(*streams_[*choice.starved])) continue;
    return {.stream = choice.first.has_value() ? streams_[*choice.first] : nullptr,
            .wanting = choice.wanting};
  }
}

void StepScheduler::Begin(ScheduledStream& stream) {
  if (SharedSlicePtr slice = FindNext(stream); slice != nullptr) {
    Hold(stream, std::move(slice));
    return;
  }
  // If the stream needs room, slices that are kept for other streams are given back first.
  while (shelf_.kept() > 0 && !budget_.HasRoom(stream.cost_bytes())) {
    budget_.Return(shelf_.TakeLast()->TakeBuffer());
  }
  const FeedPlan& plan = *stream.plan();
  absl::StatusOr<AlignedBuffer> buffer =
      budget_.Take(plan.layout().slice_bytes(), stream.memory().kind);
  if (!buffer.ok()) {
    // The system has less memory than the budget promises. This stream ends, and others go on.
    stream.Fail(buffer.status());
    return;
  }
  const auto [step, core] = stream.PlaceOfNext();
  // A task has whole groups (v1::Mix). So padding that shares a group with a record counts, too.
  const int64_t records = WholeGroups(plan, plan.order().RecordsOnCore(step, core));
  auto slice =
      std::make_shared<SharedSlice>(stream.plan(), stream.memory().kind, step, core, records,
                                    stream.reads_ahead(), *std::move(buffer), now_);
  if (Shares(stream)) shelf_.Add(slice);
  Hold(stream, std::move(slice));
}

bool StepScheduler::Shares(const ScheduledStream& stream) const {
  // With gives_away, a consumer keeps its slices and may write to them.
  return share_slices_ && !stream.memory().gives_away;
}

SharedSlicePtr StepScheduler::FindNext(const ScheduledStream& stream) const {
  if (!Shares(stream)) return nullptr;
  const auto [step, core] = stream.PlaceOfNext();
  return shelf_.Find({stream.plan().get(), step, core, stream.memory().kind});
}

void StepScheduler::JoinAhead(ScheduledStream& stream) {
  while (MayBegin(stream) && !stream.has_more() && !stream.has_untaken()) {
    SharedSlicePtr slice = FindNext(stream);
    if (slice == nullptr) return;
    Hold(stream, std::move(slice));
  }
}

void StepScheduler::Hold(ScheduledStream& stream, SharedSlicePtr slice) {
  if (slice->holders() == 0 && slice->is_done()) shelf_.Unkeep(*slice);
  if (slice->holders() > 0 || slice->is_done()) ++slices_shared_;
  stream.Begin(std::move(slice), now_);
}

// The stream that holds the most bytes gives slices back first. If a stream with a consumer in this
// process (gives_away) has given back all of its slices, it begins no slice until its consumer
// waits. Otherwise it would take the same memory again.
bool StepScheduler::TakeBackLookAhead(const ScheduledStream& starved) {
  const SliceBudget::Claim claim = ClaimOf(starved);
  const auto yields = [&](const ScheduledStream& stream) {
    return stream.ended().ok() && SliceBudget::Yields(ClaimOf(stream), claim);
  };
  const auto enough = [&] {
    return budget_.WillHaveRoom(starved.cost_bytes(), shelf_.kept_bytes());
  };
  const auto in_flight = [&] { return budget_.used_bytes() - shelf_.kept_bytes(); };
  const int64_t before = in_flight();
  while (!enough()) {
    ScheduledStream* victim = nullptr;
    for (const StreamPtr& stream : streams_) {
      if (!yields(*stream)) continue;
      if (victim == nullptr || stream->holdings().held_bytes() > victim->holdings().held_bytes()) {
        victim = stream.get();
      }
    }
    if (victim == nullptr) break;
    while (!enough() && yields(*victim)) TakeBackLast(*victim);
    victim->SetGaveWay(victim->memory().gives_away && victim->holdings().held() == 0);
  }
  return in_flight() < before;
}

void StepScheduler::ReleaseIfLeft(const SharedSlicePtr& slice) {
  if (slice->holders() > 0) return;
  if (slice->is_done()) {
    KeepOrRelease(slice);
    return;
  }
  slice->Drop();
  dropped_slices_ = true;
  shelf_.Remove(*slice);
  if (slice->is_done()) {
    budget_.Return(slice->TakeBuffer());
  } else {
    budget_.ExpectBack(slice->cost_bytes());
  }
}

bool StepScheduler::IsWanted(const SharedSlice& slice) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const StreamPtr& stream) {
    return stream->plan() == slice.plan() && stream->memory().kind == slice.kind() &&
           stream->WillComeTo(slice.step(), slice.core());
  });
}

void StepScheduler::KeepOrRelease(const SharedSlicePtr& slice) {
  if (shelf_.Has(*slice) && slice->error().ok() && IsWanted(*slice)) {
    if (!shelf_.HasRoom(slice->cost_bytes()) && kept_may_be_unwanted_) ForgetUnwanted();
    if (shelf_.HasRoom(slice->cost_bytes())) {
      shelf_.Keep(*slice);
      return;
    }
    // There is no room to keep this slice. Streams that are behind will need the slices that are
    // already kept before they need this one.
  }
  shelf_.Remove(*slice);
  budget_.Return(slice->TakeBuffer());
}

void StepScheduler::ForgetUnwanted() {
  kept_may_be_unwanted_ = false;
  for (const SharedSlicePtr& slice :
       shelf_.TakeUnwanted([&](const SharedSlice& kept) { return IsWanted(kept); })) {
    budget_.Return(slice->TakeBuffer());
  }
}

}  // namespace systole
