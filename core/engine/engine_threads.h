// The threads of a StepEngine, and the lock around its scheduler. Decides which threads work and
// which wait, and gives consumers the slices that they wait for.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_ENGINE_ENGINE_THREADS_H_
#define SYSTOLE_CORE_ENGINE_ENGINE_THREADS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/sleep_meter.h"
#include "core/concurrency/thread_times.h"
#include "core/concurrency/worker_pool.h"
#include "core/engine/busy_share.h"
#include "core/engine/core_slice.h"
#include "core/engine/dataset_shares.h"
#include "core/engine/example_maker.h"
#include "core/engine/pending_slice.h"
#include "core/engine/read_ahead.h"
#include "core/engine/scheduled_stream.h"
#include "core/engine/scratch_account.h"
#include "core/engine/shared_slice.h"
#include "core/engine/slice_task.h"
#include "core/engine/stage_totals.h"
#include "core/engine/step_engine_options.h"
#include "core/engine/step_scheduler.h"
#include "core/engine/worker_watch.h"
#include "core/fetch/block_reader.h"

namespace systole {

class EngineThreads : public std::enable_shared_from_this<EngineThreads>,
                      private ReadAhead::Engine {
 public:
  explicit EngineThreads(const StepEngineOptions& options);
  ~EngineThreads() override = default;

  using StreamPtr = std::shared_ptr<ScheduledStream>;

  absl::Status Add(const StreamPtr& stream) ABSL_LOCKS_EXCLUDED(mu_);

  void Next(const StreamPtr& stream, SliceDone done) ABSL_LOCKS_EXCLUDED(mu_);

  void Cancel(const StreamPtr& stream) ABSL_LOCKS_EXCLUDED(mu_);

  int64_t CountReady(const ScheduledStream& stream) const ABSL_LOCKS_EXCLUDED(mu_);

  // Cancels every stream, and waits for `patience` at most until no thread works or reads. False: a
  // thread still works or reads.
  bool CancelAll(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mu_);

  // Cancels every stream and joins the threads. Call this once, before the last shared_ptr to this
  // object is dropped.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  StepEngineStats GetStats() const ABSL_LOCKS_EXCLUDED(mu_);
  double busy() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // reads_ calls these two functions.
  std::optional<SliceTask> TakeToRead(StepScheduler::MayRead may_read) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void Arrive(const SliceTask& task, ExampleRun run, bool warm) override ABSL_LOCKS_EXCLUDED(mu_);

  struct Worker {
    CondVar wakes;
    bool was_woken = false;  // The worker was woken, and has not run since.
    ThreadId thread = 0;
    std::optional<SliceTask> task;  // Nullopt: the worker waits.
    // Null until the worker's thread starts. The maker and the scratch live as long as the thread.
    const ExampleMaker* maker = nullptr;
    ScratchAccount* scratch = nullptr;
  };

  // The body of a worker's thread: takes tasks and makes their examples, until the engine stops.
  void Work(int index) ABSL_LOCKS_EXCLUDED(mu_);

  StreamPtr AnyStream() const ABSL_LOCKS_EXCLUDED(mu_);

  // Null before the first stream whose records are read ahead, and once the engine stops. The
  // object lives until all workers have ended.
  ReadAhead* Reads() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return reads_.get();
  }

  // Whether the examples of `run` can be made without waiting for a server. If records of the
  // stream are on another machine and the run was not read ahead, because the stream's feed is warm
  // (WarmFeeds), looks for the run's blocks in memory.
  bool HasRecords(const SliceTask& task, ExampleRun& run) const ABSL_LOCKS_EXCLUDED(mu_);

  // Works at `run` of the task until the run is done or the thread's turn is over. A turn is 50 ms
  // of the thread's CPU time, so time in which the thread waits for storage does not count. False:
  // a part of the run is left.
  bool Make(ExampleMaker& maker, const SliceTask& task, absl::Duration begin,
            ExampleRun& run) const;

  Worker& Introduce(int index, const ExampleMaker& maker, ScratchAccount& scratch)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Whether a thread that has no task may begin one, if `coming` other threads are about to begin a
  // task, too.
  bool MayBegin(int coming = 0) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Call CountBusy() after a worker has begun or ended a task.
  void CountBusy(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Takes work; empty if there is no work. REQUIRES: MayBegin().
  StepScheduler::Work Take(int index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Waits for work. Empty: the engine stops.
  StepScheduler::Work Wait(int index) ABSL_LOCKS_EXCLUDED(mu_);

  // Call Wake() if there may be new work. Wakes reads_. Also wakes the waiting worker with the
  // lowest number, if another worker may begin a task. If there is work for more workers, Take() of
  // the woken worker calls Wake() again. So workers with high numbers hold scratch memory only if
  // they are needed.
  //   A worker counts as working from the moment when it is woken. Otherwise each piece of new work
  // would wake a worker, and most of these workers would find that enough workers have tasks.
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Wakes the thread that reads ahead, but only if there may be something to read: a wake-up costs
  // about as much as finding the blocks of a task in memory.
  void WakeReads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The body of the thread that watches: looks at the workers now and then while they work.
  void Watch() ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until the next look. Then sets `threads` to the ids of the workers' threads. The id is 0
  // for a worker that the look leaves out: a worker without a task, or a worker that waits for
  // scratch memory, because more threads would not help it. False: the engine stops.
  bool WaitForLook(std::vector<ThreadId>& threads) ABSL_LOCKS_EXCLUDED(mu_);

  StepScheduler::Answers Look(absl::Span<const std::optional<ThreadTimes>> times)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The task of worker `index`, with the record that the worker reads. REQUIRES: the worker has a
  // task.
  HungTask HungTaskOf(int index) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // From now on no work is taken for datasets that hold their full share of the threads or of the
  // memory (DatasetShares). If a read of such a dataset has timed out, the dataset's streams fail,
  // and the result has the answers to their consumers. If `fails_streams` is false, these streams
  // only wait until the next look.
  StepScheduler::Answers BlockDatasets(bool fails_streams = true)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  static void Append(StepScheduler::Answers from, StepScheduler::Answers& to);

  SliceResult ResultOf(const StreamPtr& stream, Delivery delivery);

  void TakeBack(SharedSlice& slice) ABSL_LOCKS_EXCLUDED(mu_);

  void GiveBack(ScheduledStream& stream, const std::shared_ptr<SharedSlice>& slice)
      ABSL_LOCKS_EXCLUDED(mu_);

  const MonotonicClock clock_ = SteadyClock();
  mutable Mutex mu_;
  StepScheduler scheduler_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  SharedScratch scratch_;
  const int threads_;
  const int max_threads_;
  DatasetShares datasets_ ABSL_GUARDED_BY(mu_);
  WorkerWatch watch_ ABSL_GUARDED_BY(mu_);
  BusyShare busy_ ABSL_GUARDED_BY(mu_);
  std::vector<Worker> workers_ ABSL_GUARDED_BY(mu_);
  std::set<int> idle_ ABSL_GUARDED_BY(mu_);  // Workers that wait and were not woken.
  int woken_ ABSL_GUARDED_BY(mu_) = 0;       // Workers that were woken and have not run since.
  CondVar watch_wakes_;
  CondVar rests_;  // Signalled when no thread works.
  bool watch_sleeps_ ABSL_GUARDED_BY(mu_) = false;
  int64_t reads_timed_out_ ABSL_GUARDED_BY(mu_) = 0;
  StageTotals totals_;
  const BlockReaderOptions read_options_;
  // Made for the first stream whose records are read ahead. Then constant until Stop().
  std::unique_ptr<ReadAhead> reads_ ABSL_GUARDED_BY(mu_);
  // Constant until Stop(). Declared last, because its threads use the fields above.
  std::unique_ptr<WorkerPool> pool_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_ENGINE_THREADS_H_
