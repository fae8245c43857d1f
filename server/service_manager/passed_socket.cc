#include "server/service_manager/passed_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

absl::Status Refused(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the service manager has opened a socket for this server, but ", why,
      "; let the socket's unit have one line, ListenStream=PATH, and --listen be unix:PATH"));
}

bool Is(int fd, int option, int wanted) {
  int value = -1;
  socklen_t length = sizeof(value);
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0 && value == wanted;
}

// The path that a Unix socket is bound to.
absl::StatusOr<std::string> PathOf(int fd) {
  sockaddr_un address = {};
  socklen_t length = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return absl::ErrnoToStatus(errno, "getsockname");
  }
  const size_t bytes =
      std::min(static_cast<size_t>(length), sizeof(address)) - offsetof(sockaddr_un, sun_path);
  // The path ends at its first NUL. A name in the abstract namespace begins with a NUL, so the
  // result is empty.
  return std::string(address.sun_path, ::strnlen(address.sun_path, bytes));
}

}  // namespace

absl::StatusOr<OwnedFd> TakePassedSocket(
    const std::string& path, const std::function<std::string(const char* name)>& variable,
    pid_t own, int first) {
  pid_t pid = 0;
  // If $LISTEN_PID names another process, the variables were inherited, and no socket was passed
  // to this process.
  if (!absl::SimpleAtoi(variable("LISTEN_PID"), &pid) || pid != own) return OwnedFd();
  int count = 0;
  if (!absl::SimpleAtoi(variable("LISTEN_FDS"), &count) || count < 0) {
    return Refused(absl::StrCat("$LISTEN_FDS is '", ForeignName(variable("LISTEN_FDS")), "'"));
  }
  if (count == 0) return OwnedFd();
  if (count > 1) return Refused(absl::StrCat("it has opened ", count, " of them"));
  if (!Is(first, SO_DOMAIN, AF_UNIX) || !Is(first, SO_TYPE, SOCK_STREAM) ||
      !Is(first, SO_ACCEPTCONN, 1)) {
    return Refused("it is not a Unix socket that listens for streams");
  }
  SYSTOLE_ASSIGN_OR_RETURN(const std::string bound, PathOf(first));
  if (bound.empty() || bound != path) {
    return Refused(
        absl::StrCat("it is at '", ForeignName(bound), "', and --listen names ",
                     path.empty() ? "no Unix socket" : absl::StrCat("'", ForeignName(path), "'")));
  }
  OwnedFd fd(first);
  const int flags = ::fcntl(first, F_GETFL);
  if (flags < 0 || ::fcntl(first, F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(first, F_SETFD, FD_CLOEXEC) != 0) {
    return absl::ErrnoToStatus(errno, "cannot use the socket of the service manager");
  }
  return fd;
}

}  // namespace systole
