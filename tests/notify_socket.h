// The service manager's side of sd_notify(3): receives what a server says.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_NOTIFY_SOCKET_H_
#define SYSTOLE_TESTS_NOTIFY_SOCKET_H_

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>

#include "core/descriptor/owned_fd.h"
#include "core/status/check.h"
#include "gtest/gtest.h"
#include "tests/wait_until.h"

namespace systole {

class NotifySocket {
 public:
  // Receives at `address`, as $NOTIFY_SOCKET names it: a path or "@NAME".
  explicit NotifySocket(const std::string& address)
      : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, address.data(), address.size());
    if (name.sun_path[0] == '@') name.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
    SYSTOLE_CHECK(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&name), length) == 0);
  }

  // The next message, "" if none has come.
  std::string Poll() {
    char text[4096];
    const ssize_t bytes = ::recv(fd_.get(), text, sizeof(text), MSG_DONTWAIT);
    return bytes < 0 ? "" : std::string(text, static_cast<size_t>(bytes));
  }

  // The next message. If none comes within kLongestWait, fails the test and returns "".
  std::string Next() {
    pollfd ready = {.fd = fd_.get(), .events = POLLIN};
    const int wait_ms = static_cast<int>(std::chrono::milliseconds(kLongestWait).count());
    EXPECT_EQ(::poll(&ready, 1, wait_ms), 1);
    return Poll();
  }

 private:
  const OwnedFd fd_;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_NOTIFY_SOCKET_H_
