// Ctrl-C, and what else asks a program to end (SIGTERM, SIGHUP): a command that has something to
// clean up or to tell says what is to be done then; any other is ended at once.
//
// Thread-safe.
#ifndef SYSTOLE_CLIENT_CLI_INTERRUPT_H_
#define SYSTOLE_CLIENT_CLI_INTERRUPT_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/concurrency/descriptor_poller.h"
#include "core/concurrency/mutex.h"

namespace systole {

// The exit code of a program that a signal asked to end is this and the signal's number.
inline constexpr int kExitSignalled = 128;

class Interrupt {
 public:
  // `end_now` ends the program: nothing is held up for it, or it was asked for a second time.
  explicit Interrupt(std::function<void(int signal)> end_now) : end_now_(std::move(end_now)) {}
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The program is asked to end: what the signals call.
  void Request(int signal) ABSL_LOCKS_EXCLUDED(mu_);
  // The signal of the first Request(), or nullopt.
  std::optional<int> signal() const ABSL_LOCKS_EXCLUDED(mu_);
  bool requested() const { return signal().has_value(); }

 private:
  friend class InterruptScope;

  const std::function<void(int signal)> end_now_;
  mutable Mutex mu_;
  std::optional<int> signal_ ABSL_GUARDED_BY(mu_);
  // Of the scope that is open; null: none.
  const std::function<void()>* on_request_ ABSL_GUARDED_BY(mu_) = nullptr;
};

// While it lives, a request calls `on_request` once, on another thread, which must not wait, and
// then it is for the command to end. One at a time.
class InterruptScope {
 public:
  // `interrupt` may be null: then nothing asks. One that was requested already calls `on_request`
  // now.
  InterruptScope(Interrupt* interrupt, std::function<void()> on_request);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  bool requested() const { return interrupt_ != nullptr && interrupt_->requested(); }

 private:
  Interrupt* const interrupt_;
  const std::function<void()> on_request_;
};

// From now on the signals that ask a program to end call `interrupt`, as long as the poller that is
// returned lives. Signals that the caller of the program has switched off stay so. To be called
// before there are other threads. REQUIRES: `interrupt` outlives the poller.
absl::StatusOr<std::unique_ptr<DescriptorPoller>> WatchSignals(Interrupt& interrupt);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_INTERRUPT_H_
