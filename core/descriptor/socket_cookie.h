// Distinguishes a socket from a later socket with the same descriptor number.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_DESCRIPTOR_SOCKET_COOKIE_H_
#define SYSTOLE_CORE_DESCRIPTOR_SOCKET_COOKIE_H_

#include <sys/socket.h>

#include <cstdint>

namespace systole {

// The kernel's own number of the socket `fd` (SO_COOKIE). No other socket of this machine has or
// will have this number. 0: `fd` is not a socket.
inline uint64_t SocketCookie(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  return ::getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

}  // namespace systole

#endif  // SYSTOLE_CORE_DESCRIPTOR_SOCKET_COOKIE_H_
