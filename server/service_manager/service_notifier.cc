#include "server/service_manager/service_notifier.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The longest time for which a manager that does not read can hold up the server.
constexpr timeval kSendTimeout = {.tv_sec = 1, .tv_usec = 0};

// `systemctl status` shows a status as one line.
constexpr size_t kMaxStatusBytes = 512;

// How many signs of life are sent in the watchdog's time. If one or two of them are lost, the
// manager does not restart the server.
constexpr int kSignsOfLife = 4;

struct Address {
  sockaddr_un name = {};
  socklen_t length = 0;
};

absl::StatusOr<Address> AddressOf(const std::string& socket) {
  Address address;
  address.name.sun_family = AF_UNIX;
  const bool abstract = socket.starts_with('@');
  // A path needs a NUL at its end. A name in the abstract namespace begins with a NUL instead.
  const size_t most = sizeof(address.name.sun_path) - (abstract ? 0 : 1);
  if ((!abstract && !socket.starts_with('/')) || socket.size() < 2 || socket.size() > most) {
    return absl::InvalidArgumentError(absl::StrCat("$NOTIFY_SOCKET is '", ForeignName(socket),
                                                   "', want an absolute path or @NAME, of at most ",
                                                   most, " bytes"));
  }
  std::memcpy(address.name.sun_path, socket.data(), socket.size());
  if (abstract) address.name.sun_path[0] = '\0';
  address.length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size() + (abstract ? 0 : 1));
  return address;
}

// `value` as a number above 0; 0 if `value` is empty. `name` is the variable's name, for the error.
absl::StatusOr<int64_t> NumberOf(const char* name, const std::string& value) {
  int64_t number = 0;
  if (value.empty() || (absl::SimpleAtoi(value, &number) && number > 0)) return number;
  return absl::InvalidArgumentError(
      absl::StrCat("$", name, " is '", ForeignName(value), "', want a number above 0"));
}

std::string StatusLine(absl::string_view status) {
  return absl::StrCat("STATUS=", ForeignText(status, kMaxStatusBytes));
}

}  // namespace

absl::StatusOr<NotifierOptions> NotifierOptionsOf(
    const std::function<std::string(const char* name)>& variable, pid_t own) {
  NotifierOptions options = {.socket = variable("NOTIFY_SOCKET")};
  SYSTOLE_ASSIGN_OR_RETURN(const int64_t pid, NumberOf("WATCHDOG_PID", variable("WATCHDOG_PID")));
  SYSTOLE_ASSIGN_OR_RETURN(const int64_t us, NumberOf("WATCHDOG_USEC", variable("WATCHDOG_USEC")));
  // If $WATCHDOG_PID is another process, the watchdog is for that process. `own` only inherited the
  // variables.
  if (us > 0 && (pid == 0 || pid == own)) options.watchdog = absl::Microseconds(us);
  return options;
}

absl::StatusOr<ServiceNotifier> ServiceNotifier::Create(NotifierOptions options) {
  if (options.socket.empty()) return ServiceNotifier();
  SYSTOLE_RETURN_IF_ERROR(AddressOf(options.socket).status());
  OwnedFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.ok() ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof(kSendTimeout)) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make a socket for the service manager");
  }
  return ServiceNotifier(std::move(options), std::move(fd));
}

ServiceNotifier ServiceNotifier::OfEnvironment(
    const std::function<std::string(const char* name)>& variable, pid_t own,
    std::function<void(absl::string_view why)> untold) {
  absl::StatusOr<NotifierOptions> options = NotifierOptionsOf(variable, own);
  if (options.ok()) options->untold = untold;
  absl::StatusOr<ServiceNotifier> notifier =
      options.ok() ? Create(*std::move(options)) : options.status();
  if (notifier.ok()) return *std::move(notifier);
  untold(absl::StrCat("cannot report the server's state to the service manager: ",
                      notifier.status().message()));
  return ServiceNotifier();
}

ServiceNotifier::ServiceNotifier(NotifierOptions options, OwnedFd fd)
    : options_(std::move(options)), fd_(std::move(fd)) {}

void ServiceNotifier::Send(absl::string_view message) const {
  if (!fd_.ok()) return;
  // Create() has checked the address. The kernel looks up the address for each message, so messages
  // also reach a manager that was restarted.
  const Address address = *AddressOf(options_.socket);
  const ssize_t sent = ::sendto(fd_.get(), message.data(), message.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&address.name), address.length);
  if (sent == static_cast<ssize_t>(message.size()) || options_.untold == nullptr) return;
  options_.untold(absl::StrCat("cannot report the server's state to the service manager at '",
                               ForeignName(options_.socket), "': ", std::strerror(errno)));
}

void ServiceNotifier::Starting(absl::string_view status) { Send(StatusLine(status)); }

void ServiceNotifier::Ready(absl::string_view status) {
  Send(absl::StrCat("READY=1\n", StatusLine(status)));
}

void ServiceNotifier::Reloading() {
  // The manager takes the first READY=1 that is sent after this time as the end of the reload. So
  // the time must come from the kernel's clock, and not from `options_.clock`.
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  Send(absl::StrCat(
      "RELOADING=1\nMONOTONIC_USEC=", absl::ToInt64Microseconds(absl::DurationFromTimespec(now)),
      "\n", StatusLine("reading the config again")));
}

void ServiceNotifier::Stopping(absl::string_view status) {
  Send(absl::StrCat("STOPPING=1\n", StatusLine(status)));
}

void ServiceNotifier::Alive() {
  if (!fd_.ok() || options_.watchdog == absl::InfiniteDuration()) return;
  const absl::Duration now = options_.clock();
  if (now < next_alive_) return;
  next_alive_ = now + options_.watchdog / kSignsOfLife;
  Send("WATCHDOG=1");
}

}  // namespace systole
