// TCP sockets on this machine, without gRPC. Tests use them to send bytes to a server, or to relay
// bytes between a client and a server.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_LOOPBACK_SOCKET_H_
#define SYSTOLE_TESTS_LOOPBACK_SOCKET_H_

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "core/descriptor/owned_fd.h"
#include "core/status/check.h"

namespace systole {

// The port of "127.0.0.1:PORT".
inline int PortOf(absl::string_view address) {
  int port = 0;
  SYSTOLE_CHECK(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  return port;
}

// The address 127.0.0.`host`. A server that counts machines counts each `host` as another machine.
inline sockaddr_in LoopbackAddress(int port, int host = 1) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + static_cast<uint32_t>(host));
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

inline void SendAtOnce(const OwnedFd& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Listens on a free port of 127.0.0.1 and sets `port` to it.
inline OwnedFd ListenOnLoopback(int& port) {
  OwnedFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SYSTOLE_CHECK(listener.ok());
  sockaddr_in address = LoopbackAddress(0);
  socklen_t length = sizeof(address);
  SYSTOLE_CHECK(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length) == 0);
  SYSTOLE_CHECK(::listen(listener.get(), 256) == 0);
  SYSTOLE_CHECK(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
  port = ntohs(address.sin_port);
  return listener;
}

// Returns the next client of `listener`. The socket is not ok() once the listener is shut down.
inline OwnedFd AcceptOnLoopback(const OwnedFd& listener) {
  OwnedFd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (client.ok()) SendAtOnce(client);
  return client;
}

// Connects from 127.0.0.`host` to 127.0.0.1:`port`. If the connection is refused, the socket is not
// ok().
inline OwnedFd ConnectOnLoopback(int port, int host = 1) {
  OwnedFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SYSTOLE_CHECK(socket.ok());
  SendAtOnce(socket);
  // With this option the kernel picks the local port at connect(), not at bind(). Then connections
  // to different destinations can share a local port, so that ports do not run out.
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
  const sockaddr_in from = LoopbackAddress(0, host);
  const sockaddr_in to = LoopbackAddress(port);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)) != 0 ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) {
    return OwnedFd();
  }
  return socket;
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_LOOPBACK_SOCKET_H_
