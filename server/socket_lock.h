// Lets one server at a time serve on a Unix socket. A server removes the socket file of one
// that was killed at its start, and its own at its end. A lock on a file beside it keeps servers
// apart.
//
//   PATH        the socket
//   PATH.lock   held (flock) for as long as the server lives; the kernel lets go if it is killed
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
  // Takes the socket at `path`. Removes a socket that nobody listens on, such as a killed server
  // leaves.
  //   Unavailable       another process serves there; names it if it is known, and the remedy.
  //   AlreadyExists     something else than a socket has the name.
  //   NotFound, PermissionDenied, ..  the lock file cannot be made; names the folder.
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
  std::string lock_path_;  // Empty: moved from.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_SOCKET_LOCK_H_
