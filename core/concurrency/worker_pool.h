// A fixed number of threads that begin tasks in the order in which they were submitted, and a
// parallel loop on these threads.
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
  // Starts `threads` threads. REQUIRES: threads > 0. If the system gives fewer threads, the
  // constructor ends these threads and throws std::system_error. Use this constructor if each task
  // needs a thread of its own.
  explicit WorkerPool(int threads);
  // Starts `threads` threads, or fewer if the system does not give so many. Use Create() for tasks
  // that a single thread could run, too. ResourceExhausted if the system gives none. REQUIRES:
  // threads > 0.
  static absl::StatusOr<std::unique_ptr<WorkerPool>> Create(int threads);
  // Runs every task that was submitted, and then joins the threads. No task may be submitted any
  // more.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Runs `task` on one of the threads, soon. A task may submit other tasks, but must not wait for
  // them.
  void Submit(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mu_);

  int num_threads() const { return static_cast<int>(threads_.size()); }

 private:
  WorkerPool() = default;

  // False, with the reason in `error`, if the system gives no thread.
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
// Returns when all calls of `body` have returned. May be called from several threads at once, but
// not from inside a task.
void ParallelFor(WorkerPool& pool, int64_t n, absl::FunctionRef<void(int64_t)> body);

// As above, on `threads` threads. The calling thread is one of them. The other threads end before
// ParallelFor returns. If the system gives fewer threads, ParallelFor uses those that it got,
// perhaps only the calling thread. REQUIRES: threads > 0.
void ParallelFor(int threads, int64_t n, absl::FunctionRef<void(int64_t)> body);

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_WORKER_POOL_H_
