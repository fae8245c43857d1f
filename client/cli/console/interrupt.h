// Handles Ctrl-C (SIGINT), SIGTERM and SIGHUP, which ask a program to end. A command that must
// clean up or print something holds an InterruptCallback. Without an InterruptCallback a signal
// ends the program at once.
//
// Thread-safe.
#ifndef SYSTOLE_CLIENT_CLI_CONSOLE_INTERRUPT_H_
#define SYSTOLE_CLIENT_CLI_CONSOLE_INTERRUPT_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/concurrency/descriptor_poller.h"
#include "core/concurrency/mutex.h"

namespace systole {

// If a signal ends the program, the exit code is kExitSignalled plus the signal's number.
inline constexpr int kExitSignalled = 128;

class Interrupt {
 public:
  // `end_now` ends the program. Called if there is no InterruptCallback, or on a second request.
  explicit Interrupt(std::function<void(int signal)> end_now) : end_now_(std::move(end_now)) {}
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Asks the program to end. Called when a watched signal arrives.
  void Request(int signal) ABSL_LOCKS_EXCLUDED(mu_);
  // The signal of the first Request(), or nullopt.
  std::optional<int> signal() const ABSL_LOCKS_EXCLUDED(mu_);
  bool requested() const { return signal().has_value(); }

 private:
  friend class InterruptCallback;

  const std::function<void(int signal)> end_now_;
  mutable Mutex mu_;
  std::optional<int> signal_ ABSL_GUARDED_BY(mu_);
  // The function of the living InterruptCallback; null if there is none.
  const std::function<void()>* on_request_ ABSL_GUARDED_BY(mu_) = nullptr;
};

// While an InterruptCallback lives, the first request calls `on_request` once, on another thread.
// `on_request` must not wait. After `on_request` was called, the command must end by itself. At
// most one InterruptCallback may live at a time.
class InterruptCallback {
 public:
  // If `interrupt` is null, there are no requests. If there was a request before, the constructor
  // calls `on_request`.
  InterruptCallback(Interrupt* interrupt, std::function<void()> on_request);
  ~InterruptCallback();
  InterruptCallback(const InterruptCallback&) = delete;
  InterruptCallback& operator=(const InterruptCallback&) = delete;

  bool requested() const { return interrupt_ != nullptr && interrupt_->requested(); }

 private:
  Interrupt* const interrupt_;
  const std::function<void()> on_request_;
};

// While the returned poller lives, SIGINT, SIGTERM and SIGHUP call `interrupt`.Request(). A signal
// that the process ignores when this function is called stays ignored. Call this function before
// other threads start. REQUIRES: `interrupt` outlives the poller.
absl::StatusOr<std::unique_ptr<DescriptorPoller>> WatchSignals(Interrupt& interrupt);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_CONSOLE_INTERRUPT_H_
