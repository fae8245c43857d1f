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

// Runs `work`, which returns a value.
template <typename Work>
auto WithoutGil(Work work) {
  const nanobind::gil_scoped_release release;
  return work();
}

// Whether a signal's handler raised an exception, such as KeyboardInterrupt. Long waits call this
// without the GIL.
bool SignalRaised();

// Runs `work`, which returns a Status or a StatusOr, on another thread. The caller's thread waits,
// and looks for signals: Python handles signals on its main thread only, and a request in `work`
// would block that thread. A signal raises the flag of core/interrupt on the thread of `work`.
template <typename Work>
auto Interruptibly(const Work& work) {
  const nanobind::gil_scoped_release release;
  InterruptFlag unwanted;
  Mutex mu;
  CondVar changed;
  std::optional<decltype(work())> made;
  WorkerPool thread(1);  // Declared last, because its thread uses the variables above.
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
      // The work may have ended before it saw the flag. Its result is then dropped, because Python
      // raises a SystemError if a function returns a value while an exception is set.
      if (made.has_value() && unwanted.is_raised()) return decltype(work())(InterruptedError());
      if (made.has_value()) return *std::move(made);
    }
    if (!unwanted.is_raised() && SignalRaised()) unwanted.Raise();
  }
}

}  // namespace systole::python

#endif  // SYSTOLE_CLIENT_PYTHON_EXTENSION_WITHOUT_GIL_H_
