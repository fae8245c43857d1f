// Lets one server at a time serve on a Unix socket, by a lock on a file beside the socket. At its
// start a server removes the socket file that a killed server left. At its end it removes its own
// socket file.
//
//   PATH        the socket
//   PATH.lock   locked (flock) while the server lives; a killed server loses the lock
//
// Thread-compatible.
#ifndef SYSTOLE_SERVER_SOCKET_LOCK_H_
#define SYSTOLE_SERVER_SOCKET_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/descriptor/owned_fd.h"

namespace systole {

class SocketLock {
 public:
  // Takes the socket at `path`. Removes a socket on which no process listens, such as one of a
  // killed server.
  //   Unavailable       another process serves there. The error gives the remedy and, if known, the
  //                     process.
  //   AlreadyExists     `path` is something else than a socket.
  //   NotFound, PermissionDenied, ..  the lock file cannot be made. The error names it.
  static absl::StatusOr<SocketLock> Take(const std::string& path);
  SocketLock(SocketLock&& other) noexcept
      : fd_(std::move(other.fd_)), lock_path_(std::exchange(other.lock_path_, "")) {}
  SocketLock& operator=(SocketLock&&) = delete;
  // Removes the lock file, and gives up the lock.
  ~SocketLock();

 private:
  SocketLock(OwnedFd fd, std::string lock_path)
      : fd_(std::move(fd)), lock_path_(std::move(lock_path)) {}

  OwnedFd fd_;
  std::string lock_path_;  // Empty if this object was moved from.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_SOCKET_LOCK_H_
