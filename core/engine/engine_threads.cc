#include "core/engine/engine_threads.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/interrupt/interrupt.h"
#include "core/memory/scratch_budget.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// A thread's turn ends after this much CPU time. The scheduler then chooses a stream again.
constexpr absl::Duration kTurn = absl::Milliseconds(50);

constexpr absl::Duration kWatchPeriod = absl::Milliseconds(50);
constexpr absl::Duration kStuckAfter = absl::Seconds(1);

// Bytes that are read ahead take at most 1 / kReadBudgetParts of the memory of slices.
constexpr int64_t kReadBudgetParts = 4;

int MaxThreads(const StepEngineOptions& options) {
  if (options.max_threads > 0) return std::max(options.max_threads, options.threads);
  return MaxThreadsFor(options.threads);
}

int64_t ScratchCapacity(const StepEngineOptions& options) {
  if (options.scratch_budget_bytes > 0) return options.scratch_budget_bytes;
  return std::max(options.memory_budget_bytes / 3, options.threads * ScratchBudget::kOrdinaryBytes);
}

}  // namespace

EngineThreads::EngineThreads(const StepEngineOptions& options)
    : scheduler_({.threads = options.threads,
                  .memory_budget_bytes = options.memory_budget_bytes,
                  .max_sealed_slices = options.max_sealed_slices,
                  .share_slices = true,
                  .turn = absl::ToDoubleNanoseconds(kTurn)}),
      scratch_(ScratchCapacity(options)),
      threads_(options.threads),
      max_threads_(MaxThreads(options)),
      datasets_(MaxThreads(options), options.read_timeout),
      watch_({.threads = options.threads,
              .max_threads = MaxThreads(options),
              .period = kWatchPeriod,
              .stuck_after = std::min(kStuckAfter, options.read_timeout),
              .read_timeout = options.read_timeout}),
      workers_(static_cast<size_t>(MaxThreads(options))),
      read_options_({.requests = options.reads,
                     .memory_bytes = options.read_budget_bytes > 0
                                         ? options.read_budget_bytes
                                         : options.memory_budget_bytes / kReadBudgetParts,
                     .read_timeout = options.read_timeout,
                     .disk = options.block_cache}),
      pool_(std::make_unique<WorkerPool>(MaxThreads(options) + 1)) {
  for (int i = 0; i < MaxThreads(options); ++i) pool_->Submit([this, i] { Work(i); });
  pool_->Submit([this] { Watch(); });
}

absl::Status EngineThreads::Add(const StreamPtr& stream) {
  StepScheduler::Answers answers;
  {
    MutexLock lock(mu_);
    SYSTOLE_RETURN_IF_ERROR(scheduler_.Add(stream));
    // BlockDatasets() comes before Wake(). Otherwise, if the storage of the new stream hangs
    // already, a thread could take a task of the stream and hang, too.
    answers = BlockDatasets();
    if (stream->reads_ahead() && reads_ == nullptr) {
      reads_ = std::make_unique<ReadAhead>(read_options_, static_cast<ReadAhead::Engine&>(*this));
    }
    Wake();
  }
  StepScheduler::TellAll(std::move(answers));
  return absl::OkStatus();
}

void EngineThreads::Next(const StreamPtr& stream, SliceDone done) {
  std::optional<Delivery> delivery;
  {
    MutexLock lock(mu_);
    scheduler_.SetTime(clock_());
    delivery = scheduler_.Next(*stream);
    if (!delivery.has_value()) {
      auto waiter = [self = shared_from_this(), stream,
                     done = std::move(done)](Delivery delivery) mutable {
        done(self->ResultOf(stream, std::move(delivery)));
      };
      if (scheduler_.Wait(*stream, std::move(waiter))) Wake();
      return;
    }
    Wake();
  }
  done(ResultOf(stream, *std::move(delivery)));
}

void EngineThreads::Cancel(const StreamPtr& stream) {
  StepScheduler::Answer answer;
  {
    MutexLock lock(mu_);
    answer = scheduler_.Cancel(stream);
    Wake();
  }
  answer.Tell();
}

int64_t EngineThreads::CountReady(const ScheduledStream& stream) const {
  MutexLock lock(mu_);
  return stream.CountReady();
}

bool EngineThreads::CancelAll(absl::Duration patience) {
  while (const StreamPtr stream = AnyStream()) Cancel(stream);
  const absl::Duration deadline = clock_() + patience;
  {
    MutexLock lock(mu_);
    while (watch_.busy() > 0 && clock_() < deadline) rests_.WaitFor(mu_, deadline - clock_());
    if (watch_.busy() > 0) return false;
  }
  ReadAhead* const reads = Reads();
  return reads == nullptr || reads->WaitUntilIdle(deadline - clock_());
}

void EngineThreads::Stop() {
  CancelAll(absl::ZeroDuration());
  std::unique_ptr<ReadAhead> reads;  // Destroyed while mu_ is free: ReadAhead's threads take mu_.
  {
    MutexLock lock(mu_);
    stopping_ = true;
    for (Worker& worker : workers_) worker.wakes.Signal();
    watch_wakes_.Signal();
    reads = std::move(reads_);
  }
  // The pool is destroyed before `reads`, because threads of the pool hold blocks of `reads`.
  pool_.reset();
  reads.reset();
}

StepEngineStats EngineThreads::GetStats() const {
  MutexLock lock(mu_);
  int64_t ready = 0;
  for (const StreamPtr& stream : scheduler_.streams()) ready += stream->CountReady();
  return {.examples_made = scheduler_.examples_made(),
          .memory_budget_bytes = scheduler_.budget().budget_bytes(),
          .memory_used_bytes = scheduler_.budget().used_bytes(),
          .scratch_used_bytes = scratch_.used_bytes(),
          .active_streams = static_cast<int64_t>(scheduler_.streams().size()),
          .busy = busy_.At(clock_()),
          .threads = watch_.limit(),
          .threads_stuck = watch_.stuck(),
          .reads_timed_out = reads_timed_out_,
          .reads = reads_ == nullptr ? BlockReaderStats() : reads_->GetStats(),
          .slices_shared = scheduler_.slices_shared(),
          .slices_ready = ready,
          .slices_kept = scheduler_.slices_kept(),
          .stages = totals_.stages(),
          .step_waits = totals_.step_waits()};
}

double EngineThreads::busy() const {
  MutexLock lock(mu_);
  return busy_.At(clock_());
}

void EngineThreads::Work(int index) {
  ScratchAccount scratch(scratch_);
  ExampleMaker maker(&scratch);
  SleepMeter meter;
  Worker& worker = Introduce(index, maker, scratch);
  StepScheduler::Work work = Wait(index);
  while (!work.empty()) {
    work.answer.Tell();
    std::optional<SliceTask> task = std::move(work.task);
    work = {};
    if (task.has_value()) {
      const absl::Duration begin = clock_();
      meter.Begin(begin);
      ExampleRun run = task->run();
      const bool has_records = HasRecords(*task, run);
      const bool done = has_records && Make(maker, *task, begin, run);
      const absl::Duration slept = meter.End(clock_()) - scratch.TakeWaited();
      StepScheduler::Answers answers;
      {
        MutexLock lock(mu_);
        const absl::Duration now = clock_();
        scheduler_.SetTime(now);
        const bool was_stuck = watch_.IsStuck(index);
        if (watch_.IsOverdue(index)) scheduler_.CountOverdue(*task, false);
        watch_.End(index, now);
        CountBusy(now);
        if (watch_.busy() == 0) rests_.SignalAll();
        worker.task.reset();
        const double cost = absl::ToDoubleNanoseconds(now - begin);
        task->slice().times().AddWork(now - begin, slept);
        if (!has_records && reads_ != nullptr) {
          scheduler_.ReadFirst(*task);
          reads_->Read(*task);
        } else {
          answers = done ? scheduler_.Finish(*task, run, cost)
                         : scheduler_.Return(*task, std::move(run), cost);
        }
        if (datasets_.End(*task->plan()) || was_stuck) Append(BlockDatasets(), answers);
        // If the slice is done or dropped, another slice may be begun.
        WakeReads();
        if (MayBegin()) work = Take(index);
      }
      StepScheduler::TellAll(std::move(answers));
    }
    task.reset();  // A thread that waits holds nothing of a feed.
    if (work.empty()) work = Wait(index);
  }
}

EngineThreads::StreamPtr EngineThreads::AnyStream() const {
  MutexLock lock(mu_);
  const absl::Span<const StreamPtr> streams = scheduler_.streams();
  return streams.empty() ? nullptr : streams.front();
}

bool EngineThreads::HasRecords(const SliceTask& task, ExampleRun& run) const {
  if (run.blocks != nullptr || !task.stream().is_far()) return true;
  ReadAhead* const reads = Reads();
  return reads != nullptr && reads->FindInMemory(task, run);
}

bool EngineThreads::Make(ExampleMaker& maker, const SliceTask& task, absl::Duration begin,
                         ExampleRun& run) const {
  const InterruptScope scope(task.unwanted());
  const absl::Duration cpu_begin = OwnCpuTime();
  maker.KeepIn(task.cache());
  return maker.Make(task.plan(), task.step(), task.core(), run, task.data(),
                    [&] { return clock_() - begin >= kTurn && OwnCpuTime() - cpu_begin >= kTurn; });
}

EngineThreads::Worker& EngineThreads::Introduce(int index, const ExampleMaker& maker,
                                                ScratchAccount& scratch) {
  MutexLock lock(mu_);
  Worker& worker = workers_[static_cast<size_t>(index)];
  worker.thread = OwnThreadId();
  worker.maker = &maker;
  worker.scratch = &scratch;
  return worker;
}

bool EngineThreads::MayBegin(int coming) const {
  return watch_.MayBegin(coming) || watch_.MayBeginBeside(coming);
}

void EngineThreads::CountBusy(absl::Duration now) {
  busy_.Set(std::min(1.0, static_cast<double>(watch_.busy()) / threads_), now);
}

StepScheduler::Work EngineThreads::Take(int index) {
  const absl::Duration now = clock_();
  scheduler_.SetTime(now);
  StepScheduler::Work work = scheduler_.Take(/*beside=*/!watch_.MayBegin());
  if (work.task.has_value()) {
    workers_[static_cast<size_t>(index)].task = work.task;
    watch_.Begin(index, now);
    CountBusy(now);
    if (datasets_.Begin(*work.task->plan())) BlockDatasets(/*fails_streams=*/false);
    if (std::exchange(watch_sleeps_, false)) watch_wakes_.Signal();
  }
  if (work.more) Wake();
  // If padding was taken, the next slice may be begun now. If there was no work, slices that were
  // being read may have been given back. This makes room.
  WakeReads();
  return work;
}

StepScheduler::Work EngineThreads::Wait(int index) {
  MutexLock lock(mu_);
  while (!stopping_) {
    if (MayBegin()) {
      StepScheduler::Work work = Take(index);
      if (!work.empty()) return work;
    }
    Worker& worker = workers_[static_cast<size_t>(index)];
    idle_.insert(index);
    worker.wakes.Wait(mu_);
    idle_.erase(index);
    if (std::exchange(worker.was_woken, false)) --woken_;
  }
  return {};
}

void EngineThreads::WakeReads() {
  if (reads_ != nullptr && scheduler_.TakeReadsChanged()) reads_->Wake();
}

void EngineThreads::Wake() {
  WakeReads();
  if (idle_.empty() || !MayBegin(woken_)) return;
  Worker& first = workers_[static_cast<size_t>(*idle_.begin())];
  idle_.erase(idle_.begin());  // Erased, so that the next call wakes another thread.
  first.was_woken = true;
  ++woken_;
  first.wakes.Signal();
}

void EngineThreads::Watch() {
  std::vector<ThreadId> threads;
  std::vector<std::optional<ThreadTimes>> times;
  while (WaitForLook(threads)) {
    times.clear();
    for (const ThreadId thread : threads) {
      times.push_back(thread == 0 ? std::nullopt : TimesOf(thread));
    }
    StepScheduler::TellAll(Look(times));
  }
}

bool EngineThreads::WaitForLook(std::vector<ThreadId>& threads) {
  MutexLock lock(mu_);
  while (watch_.busy() == 0 && !stopping_) {
    watch_sleeps_ = true;
    watch_wakes_.Wait(mu_);
  }
  watch_sleeps_ = false;
  const absl::Duration due = clock_() + kWatchPeriod;
  while (!stopping_ && clock_() < due) watch_wakes_.WaitFor(mu_, due - clock_());
  threads.clear();
  for (const Worker& worker : workers_) {
    const bool works = worker.task.has_value() && !worker.scratch->waits();
    threads.push_back(works ? worker.thread : 0);
  }
  return !stopping_;
}

StepScheduler::Answers EngineThreads::Look(absl::Span<const std::optional<ThreadTimes>> times) {
  MutexLock lock(mu_);
  const int stuck_before = watch_.stuck();
  StepScheduler::Answers answers;
  std::vector<bool> overdue_before;
  for (int i = 0; i < max_threads_; ++i) overdue_before.push_back(watch_.IsOverdue(i));
  const std::vector<int> timed_out = watch_.Look(clock_(), times);
  for (int i = 0; i < max_threads_; ++i) {
    const bool overdue = watch_.IsOverdue(i);
    if (overdue == overdue_before[static_cast<size_t>(i)]) continue;
    scheduler_.CountOverdue(*workers_[static_cast<size_t>(i)].task, overdue);
  }
  for (const int index : timed_out) {
    ++reads_timed_out_;
    Append(scheduler_.Abandon(*workers_[static_cast<size_t>(index)].task,
                              datasets_.ReadHangs(HungTaskOf(index))),
           answers);
  }
  if (watch_.stuck() > 0 || stuck_before > 0) Append(BlockDatasets(), answers);
  for (int i = 0; i < max_threads_ && watch_.stuck() > 0; ++i) {
    if (watch_.IsStuck(i)) workers_[static_cast<size_t>(i)].scratch->StepDown();
  }
  scheduler_.SetThreads(watch_.limit());
  Wake();
  return answers;
}

HungTask EngineThreads::HungTaskOf(int index) const {
  const Worker& worker = workers_[static_cast<size_t>(index)];
  return {.plan = worker.task->plan().get(),
          .record = std::max<int64_t>(worker.maker->reading(), 0),
          .part = worker.maker->reading_part(),
          .cost_bytes = worker.task->cost_bytes(),
          .timed_out = watch_.HasTimedOut(index)};
}

StepScheduler::Answers EngineThreads::BlockDatasets(bool fails_streams) {
  std::vector<HungTask> hung;
  for (int i = 0; i < max_threads_; ++i) {
    if (!watch_.IsStuck(i)) continue;
    hung.push_back(HungTaskOf(i));
    if (!fails_streams) hung.back().timed_out = false;
  }
  const DatasetShares::Verdict verdict = datasets_.Judge(hung, scheduler_.budget().budget_bytes());
  return scheduler_.SetBlocked([&](const FeedPlan& plan) { return verdict.Of(plan); });
}

void EngineThreads::Append(StepScheduler::Answers from, StepScheduler::Answers& to) {
  for (StepScheduler::Answer& answer : from) to.push_back(std::move(answer));
}

SliceResult EngineThreads::ResultOf(const StreamPtr& stream, Delivery delivery) {
  if (!delivery.ok()) return delivery.status();
  if (!delivery->has_value()) return std::optional<SlicePtr>();
  std::shared_ptr<SharedSlice> made = **std::move(delivery);
  const PendingSlice& slice = *made;
  StageTimes stages = stream->stages();
  totals_.Add(stages);
  if (stream->step_wait().has_value()) totals_.AddStep(*stream->step_wait());
  const FeedPlan& plan = *stream->plan();
  if (const OutputCosts::Costliest most = plan.output_costs().Find(); most.output >= 0) {
    stages.costliest = plan.outputs()[static_cast<size_t>(most.output)].tensor;
    stages.operation = most.transform;
  }
  std::function<void()> release;
  if (stream->memory().gives_away) {
    // `release` does not refer to the stream, because the consumer may keep the slice longer than
    // the stream.
    release = [self = shared_from_this(), made = std::move(made)] { self->TakeBack(*made); };
  } else {
    release = [self = shared_from_this(), stream, made = std::move(made)] {
      self->GiveBack(*stream, made);
    };
  }
  return std::optional<SlicePtr>(std::make_shared<CoreSlice>(
      stream->plan(), slice.step(), slice.core(), stages, slice.buffer(), std::move(release)));
}

void EngineThreads::TakeBack(SharedSlice& slice) {
  MutexLock lock(mu_);
  scheduler_.TakeBack(slice);
}

void EngineThreads::GiveBack(ScheduledStream& stream, const std::shared_ptr<SharedSlice>& slice) {
  StepScheduler::Answer answer;
  {
    MutexLock lock(mu_);
    scheduler_.SetTime(clock_());
    answer = scheduler_.GiveBack(stream, slice);
    Wake();
  }
  answer.Tell();
}

std::optional<SliceTask> EngineThreads::TakeToRead(StepScheduler::MayRead may_read) {
  while (true) {
    StepScheduler::Work work;
    {
      MutexLock lock(mu_);
      scheduler_.SetTime(clock_());
      work = scheduler_.TakeToRead(may_read);
      if (!work.empty() || work.more) Wake();
    }
    if (work.empty() || work.task.has_value()) return std::move(work.task);
    work.answer.Tell();
  }
}

void EngineThreads::Arrive(const SliceTask& task, ExampleRun run, bool warm) {
  StepScheduler::Answers answers;
  {
    MutexLock lock(mu_);
    scheduler_.SetTime(clock_());
    answers = scheduler_.Arrive(task, std::move(run), warm);
    Wake();
  }
  StepScheduler::TellAll(std::move(answers));
}

}  // namespace systole
