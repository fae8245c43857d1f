// A fixed number of threads that run tasks, and a parallel loop on these threads. Tasks begin in
// the order in which they were submitted.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_CONCURRENCY_WORKER_POOL_H_
#define SYSTOLE_CORE_CONCURRENCY_WORKER_POOL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/concurrency/mutex.h"

namespace systole {

class WorkerPool {
 public:
  // Starts `threads` threads. If the system gives fewer threads, the constructor ends them, and
  // throws std::system_error. Use this constructor if each task needs its own thread. REQUIRES:
  // threads > 0.
  explicit WorkerPool(int threads);
  // Starts `threads` threads, or fewer if the system gives fewer. ResourceExhausted if the system
  // gives no thread. Use Create() if a single thread could run all tasks, one after the other.
  // REQUIRES: threads > 0.
  static absl::StatusOr<std::unique_ptr<WorkerPool>> Create(int threads);
  // Waits until all tasks that were submitted have run, and joins the threads. From the beginning
  // of this call on, no task may be submitted.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Runs `task` on one of the threads, as soon as a thread is free. Does not wait for this. A task
  // may submit other tasks, but must not wait for them.
  void Submit(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mu_);

  int num_threads() const { return static_cast<int>(threads_.size()); }

 private:
  WorkerPool() = default;

  // Starts one more thread. If the system gives none, returns false and sets `error` to the reason.
  bool StartThread(std::error_code& error);
  // Waits until all tasks have run, and ends the threads.
  void Join() ABSL_LOCKS_EXCLUDED(mu_);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  Mutex mu_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;  // Constant after construction. Last: uses the members above.
};

// Runs body(0) .. body(n - 1), in any order, on the pool's threads and on the calling thread.
// Returns when all calls of `body` have returned. Several threads may call ParallelFor at once, but
// a task must not call it.
void ParallelFor(WorkerPool& pool, int64_t n, absl::FunctionRef<void(int64_t)> body);

// As above, on the calling thread and on at most threads - 1 new threads (no more than n - 1). The
// new threads end before ParallelFor returns. If the system gives fewer new threads or none,
// ParallelFor does without the missing threads. REQUIRES: threads > 0.
void ParallelFor(int threads, int64_t n, absl::FunctionRef<void(int64_t)> body);

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_WORKER_POOL_H_
