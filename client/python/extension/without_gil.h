// Runs work while other threads run Python.
//
// Thread-safe: no state. Call with the GIL held.
#ifndef SYSTOLE_CLIENT_PYTHON_EXTENSION_WITHOUT_GIL_H_
#define SYSTOLE_CLIENT_PYTHON_EXTENSION_WITHOUT_GIL_H_

#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/interrupt/interrupt.h"
#include "nanobind/nanobind.h"

namespace systole::python {

// How often a wait checks for signals.
inline constexpr absl::Duration kWaitAtMost = absl::Milliseconds(50);

// Runs `work` without the GIL, and returns its result.
template <typename Work>
auto WithoutGil(Work work) {
  const nanobind::gil_scoped_release release;
  return work();
}

// Whether a signal's handler raised an exception, such as KeyboardInterrupt. Long waits call this
// without the GIL.
bool SignalRaised();

// Runs `work`, which returns a Status or a StatusOr, on another thread. Meanwhile the caller's
// thread waits and looks for signals. Python handles signals only on its main thread, and a request
// in `work` would block the main thread if `work` ran there. If a signal's handler raises an
// exception, the flag of core/interrupt is raised on the thread of `work`.
template <typename Work>
auto Interruptibly(const Work& work) {
  const nanobind::gil_scoped_release release;
  InterruptFlag unwanted;
  Mutex mu;
  CondVar changed;
  std::optional<decltype(work())> made;
  WorkerPool thread(1);  // Declared last: its thread uses the variables above.
  thread.Submit([&] {
    const InterruptScope scope(unwanted);
    auto result = work();
    MutexLock lock(mu);
    made.emplace(std::move(result));
    changed.Signal();
  });
  while (true) {
    {
      MutexLock lock(mu);
      if (!made.has_value()) changed.WaitFor(mu, kWaitAtMost);
      // If the work has ended before it saw the flag, its result is dropped. Python would raise a
      // SystemError if a function returned a value while an exception is set.
      if (made.has_value() && unwanted.is_raised()) return decltype(work())(InterruptedError());
      if (made.has_value()) return *std::move(made);
    }
    if (!unwanted.is_raised() && SignalRaised()) unwanted.Raise();
  }
}

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_WITHOUT_GIL_H_
