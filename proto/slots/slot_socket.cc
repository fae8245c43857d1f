#include "proto/slots/slot_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"
#include "proto/slots/slot_messages.h"

namespace systole {
namespace {

constexpr absl::string_view kSuffix = ".slots";

// How many clients may wait in the socket's queue until the server accepts them.
constexpr int kBacklog = 128;

// How many descriptors Receive() can take from a packet. Only one is allowed. The room for more
// lets Receive() notice a packet with too many.
constexpr size_t kMaxPassed = 4;

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the socket '", ForeignText(path), "' has a path of ", path.size(), " bytes, want 1 to ",
        sizeof(address.sun_path) - 1, "; choose a shorter --listen unix:PATH"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

OwnedFd NewSocket() {
  return OwnedFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

absl::Status CannotConnect(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ECONNREFUSED:
      return absl::UnavailableError(absl::StrCat("no server shares memory at '", path,
                                                 "'; the beginning of the server's log says why"));
    case EACCES:
      return absl::PermissionDeniedError(
          absl::StrCat("'", path, "' belongs to another user; run client and server as one user"));
    default:
      return absl::UnavailableError(absl::StrCat(
          "cannot connect to '", path, "': ", absl::ErrnoToStatus(error, "connect").message()));
  }
}

absl::Status CheckPeer(int fd) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return absl::ErrnoToStatus(errno, "SO_PEERCRED");
  }
  if (MayShareMemory(::geteuid(), peer.uid)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("the other end of the slot socket belongs to user ", peer.uid, ", want ",
                   ::geteuid(), " or root; run client and server as one user"));
}

}  // namespace

absl::StatusOr<std::string> UnixSocketPath(absl::string_view address) {
  absl::string_view path = address;
  if (!absl::ConsumePrefix(&path, "unix:")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", address, "' is not a unix:PATH: memory is shared through a Unix socket"));
  }
  absl::ConsumePrefix(&path, "//");  // gRPC writes an absolute path like this.
  return std::string(path);
}

absl::Status RemoveStaleSocket(const std::string& path) {
  SYSTOLE_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot look at '", ForeignText(path), "'"));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(
        absl::StrCat("'", ForeignText(path), "' exists and is not a socket; move it away"));
  }
  const OwnedFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.ok()) return absl::ErrnoToStatus(errno, "socket");
  // Only ECONNREFUSED means that no process listens. connect() also fails if the socket's queue is
  // full, or if the socket at `path` is of the type SOCK_SEQPACKET, but in both cases a process
  // listens.
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
      errno != ECONNREFUSED) {
    return absl::UnavailableError(
        absl::StrCat("a process listens on the socket '", ForeignText(path),
                     "'; stop that process first, or choose another --listen unix:PATH"));
  }
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot remove the socket '", ForeignText(path),
                                                 "' on which no process listens"));
}

absl::StatusOr<std::string> SlotSocketPath(absl::string_view address) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::string path, UnixSocketPath(address));
  std::string slots = absl::StrCat(path, kSuffix);
  SYSTOLE_RETURN_IF_ERROR(AddressOf(slots).status());
  return slots;
}

bool MayShareMemory(uid_t own, uid_t peer) { return peer == own || peer == 0; }

absl::StatusOr<SlotSocket> SlotSocket::Connect(const std::string& path) {
  SYSTOLE_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  OwnedFd fd = NewSocket();
  if (!fd.ok()) return absl::ErrnoToStatus(errno, "socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return CannotConnect(path, errno);
  }
  SYSTOLE_RETURN_IF_ERROR(CheckPeer(fd.get()));
  return SlotSocket(std::move(fd));
}

absl::Status SlotSocket::Send(absl::string_view message, int pass) const {
  iovec bytes = {const_cast<char*>(message.data()), message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr packet = {};
  packet.msg_iov = &bytes;
  packet.msg_iovlen = 1;
  if (pass >= 0) {
    packet.msg_control = control;
    packet.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&packet);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &pass, sizeof(int));
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(fd_.get(), &packet, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return absl::OkStatus();
  if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) {
    return absl::UnavailableError("the other end of the slot socket is gone");
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "cannot send on the slot socket: ", absl::ErrnoToStatus(errno, "sendmsg").message()));
}

absl::StatusOr<std::optional<SlotSocket::Packet>> SlotSocket::Receive() const {
  Packet packet;
  packet.message.resize(kMaxSlotMessageBytes);
  iovec bytes = {packet.message.data(), packet.message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxPassed * sizeof(int))] = {};
  msghdr header = {};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  ssize_t got;
  do {
    got = ::recvmsg(fd_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::optional<Packet>();
  // 0 bytes mean that the connection has ended, because neither side sends an empty packet.
  if (got <= 0) return absl::UnavailableError("the other end of the slot socket is gone");
  int passed = 0;
  for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(each) + i * sizeof(int), sizeof(int));
      packet.passed = OwnedFd(fd);  // Closes the previous descriptor.
      ++passed;
    }
  }
  if ((header.msg_flags & MSG_TRUNC) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a packet on the slot socket is longer than ",
                                                   kMaxSlotMessageBytes, " bytes"));
  }
  if (passed > 1) {
    return absl::InvalidArgumentError(
        "a packet on the slot socket carries more than one descriptor");
  }
  if ((header.msg_flags & MSG_CTRUNC) != 0) {
    return absl::ResourceExhaustedError(
        "a packet on the slot socket carries a descriptor, but this process has as many open files "
        "as it may have: raise `ulimit -n`");
  }
  packet.message.resize(static_cast<size_t>(got));
  return std::optional<Packet>(std::move(packet));
}

void SlotSocket::Shutdown() const { ::shutdown(fd_.get(), SHUT_RDWR); }

absl::StatusOr<SlotListener> SlotListener::Listen(const std::string& path) {
  SYSTOLE_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  OwnedFd fd = NewSocket();
  if (!fd.ok()) return absl::ErrnoToStatus(errno, "socket");
  SYSTOLE_RETURN_IF_ERROR(RemoveStaleSocket(path));
  struct stat info = {};
  // bind() gives the file the mode that the socket has at this time. So another user can never
  // connect.
  if (::fchmod(fd.get(), S_IRUSR | S_IWUSR) != 0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::lstat(path.c_str(), &info) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot listen on '", path, "'"));
  }
  return SlotListener(std::move(fd), path, info.st_dev, info.st_ino);
}

SlotListener::SlotListener(SlotListener&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::exchange(other.path_, "")),
      device_(other.device_),
      inode_(other.inode_) {}

SlotListener::~SlotListener() {
  struct stat info = {};
  if (path_.empty() || ::lstat(path_.c_str(), &info) != 0) return;
  if (info.st_dev == device_ && info.st_ino == inode_) ::unlink(path_.c_str());
}

absl::StatusOr<std::optional<SlotSocket>> SlotListener::Accept() const {
  while (true) {
    OwnedFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.ok()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return std::optional<SlotSocket>();
      return absl::ErrnoToStatus(errno, "accept on the slot socket");
    }
    if (CheckPeer(fd.get()).ok()) return std::optional<SlotSocket>(SlotSocket(std::move(fd)));
  }
}

}  // namespace systole
