// Decides how many threads of a StepEngine work at a time, and finds threads that storage holds up.
//
//   Begin(worker) .. End(worker)     a task
//   Look(what the kernel says)       now and then: sets limit() and IsStuck(), returns time-outs
//
// A thread that waits for storage leaves its processor to another thread. If threads wait for a
// part f of their time, from 0 to 1, then `threads` / (1 - f) threads are needed to keep `threads`
// processors busy. So this many threads may work.
//
// A thread that has not run for a second (`stuck_after`), in the middle of a task, is *stuck*: its
// read hangs, perhaps because a network file system does not answer or a disk is dying. While a
// thread is stuck, another thread takes its place. After `read_timeout` the step of the stuck
// thread fails.
//
// A thread that works at one task for longer than `overdue_after`, twice the length of a turn, is
// *overdue*. Most often the thread makes a costly example, because a turn cannot end within an
// example. Other peers must not wait for that thread. So another thread may work beside it, for
// peers that have no overdue task. The kernel shares the processors between the two threads.
//
// A WorkerWatch has no thread, no lock and no clock. Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_WORKER_WATCH_H_
#define SYSTOLE_CORE_ENGINE_WORKER_WATCH_H_

#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/concurrency/thread_times.h"

namespace systole {

struct WorkerWatchOptions {
  // Threads that should run at a time.
  int threads = 1;
  // The number of all threads, at least `threads`. With more threads, more of them can wait for
  // storage at a time. But each thread costs scratch memory.
  int max_threads = 1;
  // About how often Look() is called.
  absl::Duration period = absl::Milliseconds(100);
  absl::Duration stuck_after = absl::Seconds(1);
  // A task that takes longer than this is overdue.
  absl::Duration overdue_after = absl::Milliseconds(100);
  absl::Duration read_timeout = absl::Seconds(60);
};

class WorkerWatch {
 public:
  // REQUIRES: 0 < threads <= max_threads.
  explicit WorkerWatch(const WorkerWatchOptions& options);

  // Whether a worker that has no task may begin one, if `coming` other workers are about to begin a
  // task, too.
  bool MayBegin(int coming = 0) const { return busy_ + coming - stuck_ < limit_; }
  // Whether a worker that has no task may begin a task beside tasks that are overdue.
  bool MayBeginBeside(int coming = 0) const {
    return overdue_ > 0 && busy_ + coming - stuck_ - overdue_ < limit_;
  }
  // Worker `worker`, 0 .. max_threads - 1, begins a task, or has ended its task.
  void Begin(int worker, absl::Duration now);
  void End(int worker, absl::Duration now);

  // `times` are the kernel's times of each worker at `now`. Nullopt: the worker's times are not
  // known, or the worker must not count as stuck. Returns the workers whose tasks have timed out
  // since the last call. Time in which the whole process was stopped does not count.
  std::vector<int> Look(absl::Duration now, absl::Span<const std::optional<ThreadTimes>> times);

  // How many workers may have a task, not counting those that are stuck. At least `threads`, at
  // most `max_threads`.
  int limit() const { return limit_; }
  int busy() const { return busy_; }
  int stuck() const { return stuck_; }
  // The state at the last look. A worker that is stuck is not overdue.
  bool IsOverdue(int worker) const { return workers_[static_cast<size_t>(worker)].overdue; }
  bool IsStuck(int worker) const { return workers_[static_cast<size_t>(worker)].stuck; }
  // Whether the worker has been stuck for `read_timeout`.
  bool HasTimedOut(int worker) const { return workers_[static_cast<size_t>(worker)].timed_out; }

 private:
  struct Worker {
    bool busy = false;
    bool stuck = false;
    bool timed_out = false;
    bool overdue = false;
    absl::Duration began;          // When the worker began its task.
    absl::Duration counted_until;  // busy_time has the worker's busy time up to this moment.
    absl::Duration busy_time;      // The busy time since the last look.
    absl::Duration ran_at;         // When the worker was last seen to run in this task.
    // The kernel's times of the worker at the last look, if the worker was busy then.
    std::optional<ThreadTimes> times;
  };

  void Unstick(Worker& worker);
  void SetOverdue(Worker& worker, bool overdue);

  const WorkerWatchOptions options_;
  std::vector<Worker> workers_;
  int busy_ = 0;
  int stuck_ = 0;
  int overdue_ = 0;
  int limit_;
  double waiting_part_ = 0;  // The part of the workers' busy time in which they sleep, 0 to 1.
  std::optional<absl::Duration> last_look_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_WORKER_WATCH_H_
