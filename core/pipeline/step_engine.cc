#include "core/pipeline/step_engine.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/memory/memory.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/pipeline/example_maker.h"
#include "core/pipeline/step_scheduler.h"
#include "core/status/status_macros.h"

namespace systole {

class StepStream::Engine : public std::enable_shared_from_this<StepStream::Engine> {
 public:
  explicit Engine(const StepEngineOptions& options)
      : scheduler_({.threads = options.threads,
                    .memory_budget_bytes = options.memory_budget_bytes,
                    .max_sealed_slices = options.max_sealed_slices,
                    .share_slices = true}),
        cache_(options.cache),
        pool_(std::make_unique<WorkerPool>(options.threads)) {
    for (int i = 0; i < options.threads; ++i) pool_->Submit([this] { Work(); });
  }

  absl::Status Add(const StreamPtr& stream) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    SYSTOLE_RETURN_IF_ERROR(scheduler_.Add(stream));
    Wake();
    return absl::OkStatus();
  }

  void Next(const StreamPtr& stream, Done done) ABSL_LOCKS_EXCLUDED(mu_) {
    std::optional<Delivery> delivery;
    {
      MutexLock lock(mu_);
      delivery = scheduler_.Next(*stream);
      if (!delivery.has_value()) {
        scheduler_.Wait(*stream, [self = shared_from_this(), stream,
                                  done = std::move(done)](Delivery delivery) mutable {
          done(self->ResultOf(stream, std::move(delivery)));
        });
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
    Tell(std::move(answer));
  }

  // Cancels every stream and joins the threads. Called once, before the last reference goes.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_) {
    while (true) {
      StreamPtr stream;
      {
        MutexLock lock(mu_);
        stream = scheduler_.AnyStream();
        if (stream == nullptr) {
          stopping_ = true;
          work_.SignalAll();
          break;
        }
      }
      Cancel(stream);
    }
    pool_.reset();
  }

  StepEngine::Stats GetStats() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return {.examples_made = scheduler_.examples_made(),
            .memory_budget_bytes = scheduler_.buffers().budget_bytes(),
            .memory_used_bytes = scheduler_.buffers().used_bytes(),
            .active_streams = scheduler_.num_streams(),
            .slices_shared = scheduler_.slices_shared()};
  }

 private:
  // What one thread does: makes examples for whoever goes first, until the engine stops.
  void Work() ABSL_LOCKS_EXCLUDED(mu_) {
    const MonotonicClock clock = SteadyClock();
    ExampleMaker maker(cache_.get());
    StepScheduler::Work work = Wait();
    while (!work.empty()) {
      Tell(std::move(work.answer));
      const std::optional<StepScheduler::Task> task = std::move(work.task);
      work = {};
      if (task.has_value()) {
        const absl::Duration begin = clock();
        absl::Status status =
            maker.Make(task->plan(), task->step(), task->core(), task->examples().begin,
                       task->examples().end, task->data());
        const double cost = absl::ToDoubleNanoseconds(clock() - begin);
        StepScheduler::Answers answers;
        {
          MutexLock lock(mu_);
          answers = scheduler_.Finish(*task, cost, std::move(status));
          work = Take();
        }
        for (StepScheduler::Answer& answer : answers) Tell(std::move(answer));
      }
      if (work.empty()) work = Wait();
    }
  }

  // Empty: there is none.
  StepScheduler::Work Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    StepScheduler::Work work = scheduler_.Take();
    if (work.more) Wake();
    return work;
  }

  // Waits for work. Empty: the engine stops.
  StepScheduler::Work Wait() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    while (true) {
      StepScheduler::Work work = Take();
      if (stopping_ || !work.empty()) return work;
      ++idle_;
      work_.Wait(mu_);
      --idle_;
    }
  }

  // There may be work for a thread that waits, which wakes the next one.
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (idle_ > 0) work_.Signal();
  }

  static void Tell(StepScheduler::Answer answer) {
    if (answer.waiter != nullptr) answer.waiter(std::move(answer.delivery));
  }

  Result ResultOf(const StreamPtr& stream, Delivery delivery) {
    if (!delivery.ok()) return delivery.status();
    if (!delivery->has_value()) return std::optional<SlicePtr>();
    std::shared_ptr<SharedSlice> made = **std::move(delivery);
    const PendingSlice& slice = *made;
    return std::optional<SlicePtr>(
        std::make_shared<CoreSlice>(stream->plan(), slice.step(), slice.core(), slice.buffer(),
                                    [self = shared_from_this(), stream, made = std::move(made)] {
                                      self->GiveBack(*stream, made);
                                    }));
  }

  void GiveBack(ScheduledStream& stream, const std::shared_ptr<SharedSlice>& slice)
      ABSL_LOCKS_EXCLUDED(mu_) {
    StepScheduler::Answer answer;
    {
      MutexLock lock(mu_);
      answer = scheduler_.GiveBack(stream, slice);
      Wake();
    }
    Tell(std::move(answer));
  }

  mutable Mutex mu_;
  CondVar work_;
  StepScheduler scheduler_ ABSL_GUARDED_BY(mu_);
  int idle_ ABSL_GUARDED_BY(mu_) = 0;  // Threads that wait for work.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  const std::shared_ptr<ValueCache> cache_;
  std::unique_ptr<WorkerPool> pool_;  // Constant until Stop(). Last: it uses what is above.
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
  // Shared: the thread that answers may still be signalling when the wait is over.
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
                                                             const StreamMemory& memory) {
  SYSTOLE_ASSIGN_OR_RETURN(const int64_t num_slices, CountSlices(*plan, range));
  auto stream = std::make_shared<ScheduledStream>(std::move(plan), range, memory, num_slices);
  SYSTOLE_RETURN_IF_ERROR(engine_->Add(stream));
  return absl::WrapUnique(new StepStream(engine_, std::move(stream)));
}

StepEngine::Stats StepEngine::GetStats() const { return engine_->GetStats(); }

}  // namespace systole
