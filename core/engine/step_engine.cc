#include "core/engine/step_engine.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/memory/memory.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/thread_times.h"
#include "core/concurrency/worker_pool.h"
#include "core/engine/dataset_shares.h"
#include "core/engine/example_maker.h"
#include "core/engine/scratch_account.h"
#include "core/engine/step_scheduler.h"
#include "core/engine/worker_watch.h"
#include "core/interrupt/interrupt.h"
#include "core/memory/scratch_budget.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// After this much CPU time a thread asks again whose turn it is.
constexpr absl::Duration kTurn = absl::Milliseconds(50);

constexpr absl::Duration kWatchPeriod = absl::Milliseconds(50);
constexpr absl::Duration kStuckAfter = absl::Seconds(1);

int MaxThreads(const StepEngineOptions& options) {
  if (options.max_threads > 0) return std::max(options.max_threads, options.threads);
  return MaxThreadsFor(options.threads);
}

int64_t ScratchCapacity(const StepEngineOptions& options) {
  if (options.scratch_budget_bytes > 0) return options.scratch_budget_bytes;
  return std::max(options.memory_budget_bytes / 3, options.threads * ScratchBudget::kOrdinaryBytes);
}

}  // namespace

class StepStream::Engine : public std::enable_shared_from_this<StepStream::Engine> {
 public:
  explicit Engine(const StepEngineOptions& options)
      : scheduler_({.threads = options.threads,
                    .memory_budget_bytes = options.memory_budget_bytes,
                    .max_sealed_slices = options.max_sealed_slices,
                    .share_slices = true,
                    .turn = absl::ToDoubleNanoseconds(kTurn)}),
        scratch_(ScratchCapacity(options)),
        max_threads_(MaxThreads(options)),
        datasets_(MaxThreads(options), options.read_timeout),
        watch_({.threads = options.threads,
                .max_threads = MaxThreads(options),
                .period = kWatchPeriod,
                .stuck_after = std::min(kStuckAfter, options.read_timeout),
                .read_timeout = options.read_timeout}),
        workers_(static_cast<size_t>(MaxThreads(options))),
        pool_(std::make_unique<WorkerPool>(MaxThreads(options) + 1)) {
    for (int i = 0; i < MaxThreads(options); ++i) pool_->Submit([this, i] { Work(i); });
    pool_->Submit([this] { Watch(); });
  }

  absl::Status Add(const StreamPtr& stream) ABSL_LOCKS_EXCLUDED(mu_) {
    StepScheduler::Answers answers;
    {
      MutexLock lock(mu_);
      SYSTOLE_RETURN_IF_ERROR(scheduler_.Add(stream));
      // BlockDatasets() comes before Wake(). If the dataset's storage hangs already, a thread that
      // takes a task of the stream would hang, too.
      answers = BlockDatasets();
      Wake();
    }
    StepScheduler::TellAll(std::move(answers));
    return absl::OkStatus();
  }

  void Next(const StreamPtr& stream, Done done) ABSL_LOCKS_EXCLUDED(mu_) {
    std::optional<Delivery> delivery;
    {
      MutexLock lock(mu_);
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

  void Cancel(const StreamPtr& stream) ABSL_LOCKS_EXCLUDED(mu_) {
    StepScheduler::Answer answer;
    {
      MutexLock lock(mu_);
      answer = scheduler_.Cancel(stream);
      Wake();
    }
    answer.Tell();
  }

  // Cancels every stream. True once no thread works; false if one still does after `patience`.
  bool CancelAll(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mu_) {
    while (const StreamPtr stream = AnyStream()) Cancel(stream);
    MutexLock lock(mu_);
    const absl::Duration deadline = clock_() + patience;
    while (watch_.busy() > 0 && clock_() < deadline) rests_.WaitFor(mu_, deadline - clock_());
    return watch_.busy() == 0;
  }

  // Cancels every stream and joins the threads. Called once, before the last reference goes.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_) {
    CancelAll(absl::ZeroDuration());
    {
      MutexLock lock(mu_);
      stopping_ = true;
      for (Worker& worker : workers_) worker.wakes.Signal();
      watch_wakes_.Signal();
    }
    pool_.reset();
  }

  StepEngine::Stats GetStats() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return {.examples_made = scheduler_.examples_made(),
            .memory_budget_bytes = scheduler_.budget().budget_bytes(),
            .memory_used_bytes = scheduler_.budget().used_bytes(),
            .scratch_used_bytes = scratch_.used_bytes(),
            .active_streams = scheduler_.num_streams(),
            .threads = watch_.limit(),
            .threads_stuck = watch_.stuck(),
            .reads_timed_out = reads_timed_out_,
            .slices_shared = scheduler_.slices_shared()};
  }

 private:
  struct Worker {
    CondVar wakes;
    ThreadId thread = 0;
    // The task that the worker works at, if any. The maker and the scratch outlive the task.
    std::optional<StepScheduler::Task> task;
    const ExampleMaker* maker = nullptr;
    ScratchAccount* scratch = nullptr;
  };

  // The body of a worker's thread: makes examples for the stream that goes first, until the engine
  // stops.
  void Work(int index) ABSL_LOCKS_EXCLUDED(mu_) {
    ScratchAccount scratch(scratch_);
    ExampleMaker maker(&scratch);
    Worker& worker = Introduce(index, maker, scratch);
    StepScheduler::Work work = Wait(index);
    while (!work.empty()) {
      work.answer.Tell();
      std::optional<StepScheduler::Task> task = std::move(work.task);
      work = {};
      if (task.has_value()) {
        const absl::Duration begin = clock_();
        ExampleRun run = task->run();
        const bool done = Make(maker, *task, begin, run);
        StepScheduler::Answers answers;
        {
          MutexLock lock(mu_);
          const absl::Duration now = clock_();
          const bool was_stuck = watch_.IsStuck(index);
          if (watch_.IsOverdue(index)) scheduler_.CountOverdue(*task, false);
          watch_.End(index, now);
          if (watch_.busy() == 0) rests_.SignalAll();
          worker.task.reset();
          const double cost = absl::ToDoubleNanoseconds(now - begin);
          answers = done ? scheduler_.Finish(*task, run, cost)
                         : scheduler_.Return(*task, std::move(run), cost);
          if (datasets_.End(*task->plan()) || was_stuck) Append(BlockDatasets(), answers);
          if (MayBegin()) work = Take(index);
        }
        StepScheduler::TellAll(std::move(answers));
      }
      task.reset();  // A thread that waits holds nothing of a feed.
      if (work.empty()) work = Wait(index);
    }
  }

  StreamPtr AnyStream() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return scheduler_.AnyStream();
  }

  // Works at `run` of the task until the run is done or the thread's turn is over. A turn does not
  // end while the thread waits for storage. False: something is left.
  bool Make(ExampleMaker& maker, const StepScheduler::Task& task, absl::Duration begin,
            ExampleRun& run) const {
    const InterruptScope scope(task.unwanted());
    const absl::Duration cpu_begin = OwnCpuTime();
    maker.KeepIn(task.cache());
    return maker.Make(task.plan(), task.step(), task.core(), run, task.data(), [&] {
      return clock_() - begin >= kTurn && OwnCpuTime() - cpu_begin >= kTurn;
    });
  }

  Worker& Introduce(int index, const ExampleMaker& maker, ScratchAccount& scratch)
      ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    Worker& worker = workers_[static_cast<size_t>(index)];
    worker.thread = OwnThreadId();
    worker.maker = &maker;
    worker.scratch = &scratch;
    return worker;
  }

  bool MayBegin() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return watch_.MayBegin() || watch_.MayBeginBeside();
  }

  // Takes work; empty if there is none. REQUIRES: MayBegin().
  StepScheduler::Work Take(int index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    StepScheduler::Work work = scheduler_.Take(/*beside=*/!watch_.MayBegin());
    if (work.task.has_value()) {
      workers_[static_cast<size_t>(index)].task = work.task;
      watch_.Begin(index, clock_());
      if (datasets_.Begin(*work.task->plan())) BlockDatasets(/*fails_streams=*/false);
      if (std::exchange(watch_sleeps_, false)) watch_wakes_.Signal();
    }
    if (work.more) Wake();
    return work;
  }

  // Waits for work. Empty: the engine stops.
  StepScheduler::Work Wait(int index) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    while (!stopping_) {
      if (MayBegin()) {
        StepScheduler::Work work = Take(index);
        if (!work.empty()) return work;
      }
      idle_.insert(index);
      workers_[static_cast<size_t>(index)].wakes.Wait(mu_);
      idle_.erase(index);
    }
    return {};
  }

  // Wakes the waiting thread of the lowest number, because there may be work. That thread wakes the
  // next one. So threads of high numbers, if never needed, never hold scratch memory.
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (idle_.empty() || !MayBegin()) return;
    const int first = *idle_.begin();
    idle_.erase(idle_.begin());  // So that the next call wakes another.
    workers_[static_cast<size_t>(first)].wakes.Signal();
  }

  // The body of one more thread: looks at the workers now and then while they work.
  void Watch() ABSL_LOCKS_EXCLUDED(mu_) {
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

  // Waits until the next look. Then `threads` has an id for each worker. The id is 0 if the worker
  // need not be looked at: it has no task, or it waits for scratch memory, where more threads would
  // not help. False: the engine stops.
  bool WaitForLook(std::vector<ThreadId>& threads) ABSL_LOCKS_EXCLUDED(mu_) {
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

  StepScheduler::Answers Look(absl::Span<const std::optional<ThreadTimes>> times)
      ABSL_LOCKS_EXCLUDED(mu_) {
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

  // The task of worker `index`, with its read. REQUIRES: the worker has a task.
  HungTask HungTaskOf(int index) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const Worker& worker = workers_[static_cast<size_t>(index)];
    return {.plan = worker.task->plan().get(),
            .record = std::max<int64_t>(worker.maker->reading(), 0),
            .cost_bytes = worker.task->cost_bytes(),
            .timed_out = watch_.HasTimedOut(index)};
  }

  // From now on no work is taken for datasets that use up their share of the threads
  // (DatasetShares). If `fails_streams`, streams of datasets whose reads have timed out fail, and
  // this returns what to tell their consumers. Otherwise they only wait until the next look.
  StepScheduler::Answers BlockDatasets(bool fails_streams = true)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::vector<HungTask> hung;
    for (int i = 0; i < max_threads_; ++i) {
      if (!watch_.IsStuck(i)) continue;
      hung.push_back(HungTaskOf(i));
      if (!fails_streams) hung.back().timed_out = false;
    }
    const DatasetShares::Verdict verdict =
        datasets_.Judge(hung, scheduler_.budget().budget_bytes());
    return scheduler_.SetBlocked([&](const FeedPlan& plan) { return verdict.Of(plan); });
  }

  static void Append(StepScheduler::Answers from, StepScheduler::Answers& to) {
    for (StepScheduler::Answer& answer : from) to.push_back(std::move(answer));
  }

  Result ResultOf(const StreamPtr& stream, Delivery delivery) {
    if (!delivery.ok()) return delivery.status();
    if (!delivery->has_value()) return std::optional<SlicePtr>();
    std::shared_ptr<SharedSlice> made = **std::move(delivery);
    const PendingSlice& slice = *made;
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
        stream->plan(), slice.step(), slice.core(), slice.buffer(), std::move(release)));
  }

  void TakeBack(SharedSlice& slice) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    scheduler_.TakeBack(slice);
  }

  void GiveBack(ScheduledStream& stream, const std::shared_ptr<SharedSlice>& slice)
      ABSL_LOCKS_EXCLUDED(mu_) {
    StepScheduler::Answer answer;
    {
      MutexLock lock(mu_);
      answer = scheduler_.GiveBack(stream, slice);
      Wake();
    }
    answer.Tell();
  }

  const MonotonicClock clock_ = SteadyClock();
  mutable Mutex mu_;
  StepScheduler scheduler_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  SharedScratch scratch_;
  const int max_threads_;
  DatasetShares datasets_ ABSL_GUARDED_BY(mu_);
  WorkerWatch watch_ ABSL_GUARDED_BY(mu_);
  std::vector<Worker> workers_ ABSL_GUARDED_BY(mu_);
  std::set<int> idle_ ABSL_GUARDED_BY(mu_);  // Workers that wait and were not woken.
  CondVar watch_wakes_;
  CondVar rests_;  // Signalled when no thread works.
  bool watch_sleeps_ ABSL_GUARDED_BY(mu_) = false;
  int64_t reads_timed_out_ ABSL_GUARDED_BY(mu_) = 0;
  std::unique_ptr<WorkerPool> pool_;  // Constant until Stop(). Last: uses the fields above.
};

StepStream::StepStream(std::shared_ptr<Engine> engine, StreamPtr stream)
    : engine_(std::move(engine)), stream_(std::move(stream)) {}

StepStream::~StepStream() { Cancel(); }

void StepStream::Next(Done done) { engine_->Next(stream_, std::move(done)); }

StepStream::Result StepStream::Next() {
  struct Waiter {
    Mutex mu;
    CondVar arrived;
    std::optional<Result> result ABSL_GUARDED_BY(mu);
  };
  // Shared, because the thread that answers may still be signalling when the wait is over.
  const auto waiter = std::make_shared<Waiter>();
  Next([waiter](Result result) {
    MutexLock lock(waiter->mu);
    waiter->result = std::move(result);
    waiter->arrived.Signal();
  });
  MutexLock lock(waiter->mu);
  while (!waiter->result.has_value()) waiter->arrived.Wait(waiter->mu);
  return *std::move(waiter->result);
}

void StepStream::Cancel() { engine_->Cancel(stream_); }

StepEngine::StepEngine(const StepEngineOptions& options)
    : engine_(std::make_shared<StepStream::Engine>(options)) {}

StepEngine::~StepEngine() { engine_->Stop(); }

absl::StatusOr<std::unique_ptr<StepStream>> StepEngine::Open(std::shared_ptr<const FeedPlan> plan,
                                                             const StepRange& range,
                                                             const StreamMemory& memory,
                                                             std::string peer,
                                                             std::shared_ptr<ValueCache> cache) {
  SYSTOLE_ASSIGN_OR_RETURN(const int64_t num_slices, CountSlices(*plan, range));
  auto stream = std::make_shared<ScheduledStream>(std::move(plan), range, memory, num_slices,
                                                  std::move(peer), std::move(cache));
  SYSTOLE_RETURN_IF_ERROR(engine_->Add(stream));
  return absl::WrapUnique(new StepStream(engine_, std::move(stream)));
}

bool StepEngine::CancelAll(absl::Duration patience) { return engine_->CancelAll(patience); }

StepEngine::Stats StepEngine::GetStats() const { return engine_->GetStats(); }

}  // namespace systole
