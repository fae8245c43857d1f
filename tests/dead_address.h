// An address on which no program listens.
//
// Thread-safe.
#ifndef SYSTOLE_TESTS_DEAD_ADDRESS_H_
#define SYSTOLE_TESTS_DEAD_ADDRESS_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"

namespace systole {

// Returns "127.0.0.1:PORT". This program keeps the port until it ends, but does not listen on it.
// Each connection is refused, and no other program can get the port.
inline std::string DeadAddress() {
  const int holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  SYSTOLE_CHECK(holder >= 0);
  SYSTOLE_CHECK(bind(holder, reinterpret_cast<sockaddr*>(&address), size) == 0);
  SYSTOLE_CHECK(getsockname(holder, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_DEAD_ADDRESS_H_
