// Makes the sockets on which a server listens.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_LISTENER_LISTENING_SOCKETS_H_
#define SYSTOLE_SERVER_LISTENER_LISTENING_SOCKETS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/descriptor/owned_fd.h"

namespace systole {

// Removes the file of a Unix socket when destroyed.
class SocketFile {
 public:
  // No file.
  SocketFile() = default;
  explicit SocketFile(std::string path) : path_(std::move(path)) {}
  SocketFile(SocketFile&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  SocketFile& operator=(SocketFile&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~SocketFile();

 private:
  std::string path_;
};

// Non-blocking sockets that listen.
struct ListeningSockets {
  std::vector<OwnedFd> fds;
  SocketFile file;  // Only of a Unix socket.
  int port = 0;     // The same for all sockets; 0 for a Unix socket.
};

// Listens on every address of `host`: a name, "127.0.0.1", or "[::1]". "0.0.0.0" is every IPv4
// address of the machine; "[::]" is every IPv4 and IPv6 address. Port 0: any free port. If this
// machine has no IPv4 or no IPv6, addresses of the missing kind are left out, but at least one
// address must remain.
//   Unavailable  the port is taken on one of the addresses, none of them is this machine's, or
//                `host` is unknown.
absl::StatusOr<ListeningSockets> ListenOnTcp(const std::string& host, int port);

// Makes the socket file `path`, which must not exist, and listens. The folder's mode and the umask
// decide who may connect.
//   InvalidArgument  the path is longer than a socket's can be.
//   Unavailable      the file cannot be made.
absl::StatusOr<ListeningSockets> ListenOnUnix(const std::string& path);

}  // namespace systole

#endif  // SYSTOLE_SERVER_LISTENER_LISTENING_SOCKETS_H_
