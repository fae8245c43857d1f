// Reports the server's state to the service manager that started this process. The protocol is that
// of sd_notify(3): each message is a datagram to the socket that $NOTIFY_SOCKET names.
//
// Thread-compatible.
#ifndef SYSTOLE_SERVER_SERVICE_MANAGER_SERVICE_NOTIFIER_H_
#define SYSTOLE_SERVER_SERVICE_MANAGER_SERVICE_NOTIFIER_H_

#include <sys/types.h>

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/descriptor/owned_fd.h"

namespace systole {

struct NotifierOptions {
  // A path, or "@NAME" in Linux's abstract namespace. Empty: no manager gets messages.
  std::string socket;
  // The manager restarts the server if it gets no sign of life for this long. Infinite: the manager
  // expects no signs of life.
  absl::Duration watchdog = absl::InfiniteDuration();
  // Measures the time between two signs of life.
  MonotonicClock clock = SteadyClock();
  // Called with a sentence for people if a message to the manager cannot be sent within a second.
  // May be null.
  std::function<void(absl::string_view why)> untold;
};

// The options that $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID give to the process with the id
// `own`. `variable` returns the value of a variable, "" if it is not set.
//   InvalidArgument  $WATCHDOG_USEC or $WATCHDOG_PID is no number above 0.
absl::StatusOr<NotifierOptions> NotifierOptionsOf(
    const std::function<std::string(const char* name)>& variable, pid_t own);

// Sends messages to the manager. A `status` is a short line that `systemctl status` shows.
class ServiceNotifier {
 public:
  // A notifier that sends nothing.
  ServiceNotifier() = default;
  // InvalidArgument if `options.socket` is neither empty nor the name of a Unix socket.
  static absl::StatusOr<ServiceNotifier> Create(NotifierOptions options);
  // A notifier with the options of NotifierOptionsOf(). If a variable is wrong, calls `untold` and
  // returns a notifier that sends nothing, because the variables may be meant for another program.
  static ServiceNotifier OfEnvironment(const std::function<std::string(const char* name)>& variable,
                                       pid_t own,
                                       std::function<void(absl::string_view why)> untold);

  void Starting(absl::string_view status);
  // Says that the server serves. Call it at the start, and after each Reloading().
  void Ready(absl::string_view status);
  void Reloading();
  void Stopping(absl::string_view status);
  // Says that the server is alive. Call it often: it sends a message only if a quarter of
  // `options.watchdog` has passed since the last such message.
  void Alive();

 private:
  ServiceNotifier(NotifierOptions options, OwnedFd fd);
  void Send(absl::string_view message) const;

  NotifierOptions options_;
  OwnedFd fd_;  // None: nothing is sent.
  absl::Duration next_alive_ = -absl::InfiniteDuration();
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_SERVICE_MANAGER_SERVICE_NOTIFIER_H_
