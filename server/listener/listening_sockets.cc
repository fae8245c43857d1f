#include "server/listener/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// How many times port 0 is tried. A port that is free on one address may be taken on the next.
constexpr int kMaxPortsTried = 16;

absl::Status Failed(const char* what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

OwnedFd NewSocket(int family) {
  return OwnedFd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<Addresses> Resolve(absl::string_view host) {
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(std::string(host).c_str(), nullptr, &hints, &list);
  if (error != 0) return absl::UnavailableError(::gai_strerror(error));
  return Addresses(list);
}

void SetPort(sockaddr_storage& address, int port) {
  const in_port_t network_order = htons(static_cast<uint16_t>(port));
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = network_order;
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = network_order;
  }
}

absl::StatusOr<int> PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return Failed("getsockname", errno);
  }
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// Listens on `address`. Returns 0, or an errno.
int ListenOn(const addrinfo& address, int port, OwnedFd& fd) {
  sockaddr_storage bound = {};
  std::memcpy(&bound, address.ai_addr, address.ai_addrlen);
  SetPort(bound, port);
  fd = NewSocket(address.ai_family);
  if (!fd.ok()) return errno;
  const int on = 1;
  // With SO_REUSEADDR, a server that is started again need not wait until the kernel forgets the
  // connections of the server before it. A second server on the port is still refused, because
  // SO_REUSEPORT is not set.
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) return errno;
  if (address.ai_family == AF_INET6) {
    // "[::]" accepts IPv4 connections, too, whatever the system's default is.
    const int off = 0;
    if (::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) != 0) return errno;
  }
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&bound), address.ai_addrlen) != 0) return errno;
  return ::listen(fd.get(), SOMAXCONN) == 0 ? 0 : errno;
}

bool SameAddress(const addrinfo& a, const addrinfo& b) {
  return a.ai_addrlen == b.ai_addrlen && std::memcmp(a.ai_addr, b.ai_addr, a.ai_addrlen) == 0;
}

// A hosts file may name an address twice.
bool CameBefore(const addrinfo* list, const addrinfo* address) {
  for (; list != address; list = list->ai_next) {
    if (SameAddress(*list, *address)) return true;
  }
  return false;
}

// `taken` says whether the port was taken on one of the addresses.
absl::StatusOr<ListeningSockets> ListenOnAll(const addrinfo* list, int port, bool& taken) {
  ListeningSockets sockets = {.port = port};
  int error = EADDRNOTAVAIL;
  for (const addrinfo* address = list; address != nullptr; address = address->ai_next) {
    if (CameBefore(list, address)) continue;
    OwnedFd fd;
    const int failed = ListenOn(*address, sockets.port, fd);
    taken = failed == EADDRINUSE;
    if (taken) return Failed("bind", failed);
    if (failed != 0) {
      error = failed;
      continue;
    }
    SYSTOLE_ASSIGN_OR_RETURN(sockets.port, PortOf(fd.get()));
    sockets.fds.push_back(std::move(fd));
  }
  if (sockets.fds.empty()) return Failed("bind", error);
  return sockets;
}

}  // namespace

SocketFile::~SocketFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

absl::StatusOr<ListeningSockets> ListenOnTcp(const std::string& host, int port) {
  SYSTOLE_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(host));
  bool taken = false;
  absl::StatusOr<ListeningSockets> sockets = ListenOnAll(addresses.get(), port, taken);
  for (int tried = 1; port == 0 && taken && tried < kMaxPortsTried; ++tried) {
    sockets = ListenOnAll(addresses.get(), port, taken);
  }
  return sockets;
}

absl::StatusOr<ListeningSockets> ListenOnUnix(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the path has ", path.size(), " bytes, want 1 to ", sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  ListeningSockets sockets;
  OwnedFd fd = NewSocket(AF_UNIX);
  if (!fd.ok()) return Failed("socket", errno);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return Failed("bind", errno);
  }
  sockets.file = SocketFile(path);
  if (::listen(fd.get(), SOMAXCONN) != 0) return Failed("listen", errno);
  sockets.fds.push_back(std::move(fd));
  return sockets;
}

}  // namespace systole
