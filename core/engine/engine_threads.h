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

  // Cancels every stream. True once no thread works or reads. False if a thread still works or
  // reads after `patience`.
  bool CancelAll(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mu_);

  // Cancels every stream and joins the threads. Called once, before the last reference goes.
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
    // The task that the worker works at, if any. The maker and the scratch outlive the task.
    std::optional<SliceTask> task;
    const ExampleMaker* maker = nullptr;
    ScratchAccount* scratch = nullptr;
  };

  // The body of a worker's thread: makes examples for the stream that goes first, until the engine
  // stops.
  void Work(int index) ABSL_LOCKS_EXCLUDED(mu_);

  StreamPtr AnyStream() const ABSL_LOCKS_EXCLUDED(mu_);

  // Null before the first far stream, and once the engine stops. The object outlives the threads.
  ReadAhead* Reads() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return reads_.get();
  }

  // Whether the records of `run` are there. If the run needs blocks and has none, because its
  // stream is warm, looks for the run's blocks in memory.
  bool HasRecords(const SliceTask& task, ExampleRun& run) const ABSL_LOCKS_EXCLUDED(mu_);

  // Works at `run` of the task until the run is done or the thread's turn is over. A turn does not
  // end while the thread waits for storage. False: a part of the run is left.
  bool Make(ExampleMaker& maker, const SliceTask& task, absl::Duration begin,
            ExampleRun& run) const;

  Worker& Introduce(int index, const ExampleMaker& maker, ScratchAccount& scratch)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Whether a thread that has no task may begin one, if `coming` other threads are about to begin a
  // task, too.
  bool MayBegin(int coming = 0) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // A worker has begun or ended a task.
  void CountBusy(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Takes work; empty if there is no work. REQUIRES: MayBegin().
  StepScheduler::Work Take(int index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Waits for work. Empty: the engine stops.
  StepScheduler::Work Wait(int index) ABSL_LOCKS_EXCLUDED(mu_);

  // Call Wake() if there may be work. Wakes reads_, and the waiting thread with the lowest number.
  // That thread wakes the next one. So a thread with a high number holds scratch memory only if the
  // thread is needed. A thread counts as working from the moment when it is woken. Otherwise each
  // piece of work would wake a thread, and most of these threads would find that enough threads
  // work already.
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Wakes the thread that reads ahead, if there may be something to read. To wake the thread for
  // nothing would cost about as much as finding the blocks of a task in memory.
  void WakeReads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The body of the thread that watches: looks at the workers now and then while they work.
  void Watch() ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until the next look. Then `threads` has an id for each worker. The id is 0 if the worker
  // need not be watched: it has no task, or it waits for scratch memory, and more threads would not
  // make that memory free. False: the engine stops.
  bool WaitForLook(std::vector<ThreadId>& threads) ABSL_LOCKS_EXCLUDED(mu_);

  StepScheduler::Answers Look(absl::Span<const std::optional<ThreadTimes>> times)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The task of worker `index`, with the record that the worker reads. REQUIRES: the worker has a
  // task.
  HungTask HungTaskOf(int index) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // From now on no work is taken for datasets that use up their share of the threads
  // (DatasetShares). If `fails_streams`, streams of datasets whose reads have timed out fail, and
  // the result has the answers to their consumers. If `fails_streams` is false, these streams only
  // wait until the next look.
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
  std::unique_ptr<WorkerPool> pool_;  // Constant until Stop(). Last: uses the fields above.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_ENGINE_THREADS_H_
