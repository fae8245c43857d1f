// A simple HTTP/2 client. It sends what gRPC's own client refuses to send, such as header values
// with a line end in them.
//
// Single-thread.
#ifndef SYSTOLE_TESTS_RAW_HTTP2_H_
#define SYSTOLE_TESTS_RAW_HTTP2_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "core/descriptor/owned_fd.h"
#include "core/status/check.h"
#include "tests/http2_frames.h"

namespace systole {

using RawHeaders = std::vector<std::pair<std::string, std::string>>;

class RawHttp2 {
 public:
  // Connects to "127.0.0.1:PORT".
  explicit RawHttp2(absl::string_view address) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    int port = 0;
    SYSTOLE_CHECK(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    SYSTOLE_CHECK(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0);
    const timeval limit = {.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    Send(kHttp2Preface + Http2Frame(/*type=*/4, /*flags=*/0, 0, ""));
  }

  // Sends a gRPC request to `method` without a body, with these headers besides the usual ones.
  void Request(const std::string& method, const RawHeaders& more) {
    SendHeaders(method, more, /*flags=*/4 | 1);  // END_HEADERS, END_STREAM.
  }

  // Sends a request that announces a body, which never comes.
  void BeginRequest(const std::string& method) { SendHeaders(method, {}, /*flags=*/4); }

  // Sends a PING and reads until its answer comes. By then the server has read all that was sent
  // before the PING. Returns false if the server has closed the connection.
  bool Settle() {
    Send(Http2Frame(/*type=*/6, /*flags=*/0, 0, "settled?"));
    std::string seen;
    char buffer[4096];
    ssize_t got;
    while (seen.find("settled?") == std::string::npos &&
           (got = ::recv(fd_.get(), buffer, sizeof(buffer), 0)) > 0) {
      seen.append(buffer, static_cast<size_t>(got));
    }
    return seen.find("settled?") != std::string::npos;
  }

 private:
  void SendHeaders(const std::string& method, const RawHeaders& more, int flags) {
    std::string block;
    for (const auto& [name, value] : RawHeaders{{":method", "POST"},
                                                {":scheme", "http"},
                                                {":path", method},
                                                {":authority", "x"},
                                                {"te", "trailers"},
                                                {"content-type", "application/grpc"}}) {
      block += Http2Header(name, value);
    }
    for (const auto& [name, value] : more) block += Http2Header(name, value);
    Send(Http2Frame(/*type=*/1, flags, next_stream_, block));
    next_stream_ += 2;
  }
  // Ignores an error: if the server has closed the connection, Settle() returns false.
  void Send(const std::string& bytes) {
    ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  OwnedFd fd_;
  uint32_t next_stream_ = 1;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_RAW_HTTP2_H_
