#include "core/concurrency/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"

namespace systole {

bool WorkerPool::StartThread(std::error_code& error) {
  try {
    threads_.emplace_back([this] { Run(); });
    return true;
  } catch (const std::system_error& no_thread) {
    error = no_thread.code();
    return false;
  }
}

WorkerPool::WorkerPool(int threads) {
  SYSTOLE_CHECK(threads > 0);
  std::error_code error;
  for (int i = 0; i < threads; ++i) {
    if (StartThread(error)) continue;
    Join();
    throw std::system_error(error);
  }
}

absl::StatusOr<std::unique_ptr<WorkerPool>> WorkerPool::Create(int threads) {
  SYSTOLE_CHECK(threads > 0);
  std::unique_ptr<WorkerPool> pool = absl::WrapUnique(new WorkerPool());
  std::error_code error;
  while (pool->num_threads() < threads && pool->StartThread(error)) {
  }
  if (pool->num_threads() > 0) return pool;
  return absl::ResourceExhaustedError(
      absl::StrCat("the system gives no thread (", error.message(),
                   "); raise the limit of threads (`ulimit -u`, a container's pids) or of memory"));
}

WorkerPool::~WorkerPool() { Join(); }

void WorkerPool::Join() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Submit(std::function<void()> task) {
  MutexLock lock(mu_);
  tasks_.push_back(std::move(task));
  changed_.Signal();
}

void WorkerPool::Run() {
  while (true) {
    std::function<void()> run;
    {
      MutexLock lock(mu_);
      while (tasks_.empty() && !stopping_) changed_.Wait(mu_);
      if (tasks_.empty()) return;
      run = std::move(tasks_.front());
      tasks_.pop_front();
    }
    run();
  }
}

namespace {

// The caller and the tasks share this state. The state may outlive the call of ParallelFor, because
// a task may start after that call has returned. A task that starts so late finds no index left,
// and returns.
struct LoopState {
  explicit LoopState(int64_t n, absl::FunctionRef<void(int64_t)> body) : n(n), body(body) {}

  void RunSome() {
    int64_t ran = 0;
    for (int64_t i = next.fetch_add(1); i < n; i = next.fetch_add(1)) {
      body(i);
      ++ran;
    }
    if (ran == 0) return;
    MutexLock lock(mu);
    done += ran;
    if (done == n) all_done.SignalAll();
  }

  const int64_t n;
  const absl::FunctionRef<void(int64_t)> body;  // Called only while an index is left.
  std::atomic<int64_t> next = 0;
  Mutex mu;
  CondVar all_done;
  int64_t done ABSL_GUARDED_BY(mu) = 0;
};

}  // namespace

void ParallelFor(int threads, int64_t n, absl::FunctionRef<void(int64_t)> body) {
  const auto helpers = static_cast<int>(std::min<int64_t>(threads, n)) - 1;
  absl::StatusOr<std::unique_ptr<WorkerPool>> pool;
  if (helpers > 0) pool = WorkerPool::Create(helpers);
  if (helpers > 0 && pool.ok()) {
    ParallelFor(**pool, n, body);
  } else {
    for (int64_t i = 0; i < n; ++i) body(i);
  }
}

void ParallelFor(WorkerPool& pool, int64_t n, absl::FunctionRef<void(int64_t)> body) {
  if (n <= 0) return;
  const auto state = std::make_shared<LoopState>(n, body);
  const int64_t helpers = std::min<int64_t>(pool.num_threads(), n - 1);
  for (int64_t i = 0; i < helpers; ++i) {
    pool.Submit([state] { state->RunSome(); });
  }
  state->RunSome();
  MutexLock lock(state->mu);
  while (state->done < n) state->all_done.Wait(state->mu);
}

}  // namespace systole
