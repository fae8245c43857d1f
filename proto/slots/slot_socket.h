// The slot socket: the Unix socket over which a server passes memory to clients of the same
// machine. It is a second socket beside the server's own Unix socket. Its packets may carry a file
// descriptor. No function here blocks.
//
// Thread-safe.
#ifndef SYSTOLE_PROTO_SLOTS_SLOT_SOCKET_H_
#define SYSTOLE_PROTO_SLOTS_SLOT_SOCKET_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/descriptor/owned_fd.h"

namespace systole {

// The socket path of a server that listens on `address`.
//   InvalidArgument  `address` is not of the form "unix:PATH".
absl::StatusOr<std::string> UnixSocketPath(absl::string_view address);

// Removes the socket file at `path` if no process listens on it. A killed process leaves such a
// file. OK if there is no file.
//   Unavailable    a process listens on the socket.
//   AlreadyExists  `path` is not a socket.
//   another code   the system cannot look at the file, or cannot remove it.
absl::Status RemoveStaleSocket(const std::string& path);

// The path of the slot socket of a server that listens on `address`: PATH.slots for "unix:PATH".
//   InvalidArgument  `address` is not of the form "unix:PATH", or the path is longer than the path
//                    of a socket may be.
absl::StatusOr<std::string> SlotSocketPath(absl::string_view address);

// Whether a process of the user `own` may share memory with a process of the user `peer`. True if
// `peer` is the same user, or root. (Root can read all memory in any case.)
bool MayShareMemory(uid_t own, uid_t peer);

// One end of a connection to a slot socket.
class SlotSocket {
 public:
  // Connects to the server that listens on `path`.
  //   Unavailable       no process listens on `path`, or too many clients wait already.
  //   PermissionDenied  the server, or its socket, belongs to another user.
  static absl::StatusOr<SlotSocket> Connect(const std::string& path);
  // Takes over a connected, non-blocking socket (O_NONBLOCK).
  explicit SlotSocket(OwnedFd fd) : fd_(std::move(fd)) {}

  // Sends `message` as one packet. If `pass` is not negative, the peer gets a duplicate of the
  // descriptor `pass` with the packet.
  //   Unavailable        the peer is gone.
  //   ResourceExhausted  there is no room for the packet, because the peer does not read, or
  //                      because too many descriptors were sent and not received.
  absl::Status Send(absl::string_view message, int pass = -1) const;

  struct Packet {
    std::string message;
    OwnedFd passed;
  };
  // The next packet, or nullopt if none has come yet.
  //   Unavailable        the peer is gone and all its packets were received.
  //   InvalidArgument    the packet is too long or carries several descriptors.
  //   ResourceExhausted  the packet carries a descriptor, but this process has as many open files
  //                      as it may have.
  absl::StatusOr<std::optional<Packet>> Receive() const;

  // Ends the connection: every later Send() of either end fails.
  void Shutdown() const;

  int fd() const { return fd_.get(); }

 private:
  OwnedFd fd_;
};

// The server's slot socket, to which clients connect.
class SlotListener {
 public:
  // Makes the socket file, readable and writable for this user alone. Replaces a socket file on
  // which no process listens. Fails with an error of RemoveStaleSocket(), or with another code if
  // the file cannot be made.
  static absl::StatusOr<SlotListener> Listen(const std::string& path);
  SlotListener(SlotListener&& other) noexcept;
  SlotListener& operator=(SlotListener&&) = delete;
  // Removes the socket file, unless another file has taken its name.
  ~SlotListener();

  // The next connection of a client with which this process may share memory; nullopt if none
  // waits. Closes the connections of other clients. ResourceExhausted or another code if the system
  // refuses to accept a connection.
  absl::StatusOr<std::optional<SlotSocket>> Accept() const;

  // Readable when a connection waits.
  int fd() const { return fd_.get(); }

 private:
  SlotListener(OwnedFd fd, std::string path, dev_t device, ino_t inode)
      : fd_(std::move(fd)), path_(std::move(path)), device_(device), inode_(inode) {}

  OwnedFd fd_;
  std::string path_;  // Empty if this object was moved from.
  dev_t device_;
  ino_t inode_;
};

}  // namespace systole

#endif  // SYSTOLE_PROTO_SLOTS_SLOT_SOCKET_H_
