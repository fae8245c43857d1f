// An HTTP client for tests. It sends any bytes, at any pace, and reads all that comes back.
//
// Single-thread.
#ifndef SYSTOLE_TESTS_SERVER_ADMIN_HTTP_CLIENT_H_
#define SYSTOLE_TESTS_SERVER_ADMIN_HTTP_CLIENT_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "core/descriptor/owned_fd.h"

struct ssl_st;

namespace systole {

// The names of PEM files. If `ca` is empty, the connection has no TLS.
struct TestTls {
  std::string ca;
  std::string certificate = {};  // The client's certificate. Empty: the client has none.
  std::string key = {};
};

class TestHttpConnection {
 public:
  // Connects to 127.0.0.1.
  explicit TestHttpConnection(int port, const TestTls& tls = {});
  ~TestHttpConnection();

  // Whether the handshake of TLS has succeeded; true without TLS.
  bool ok() const { return ok_; }
  // False if the server has hung up.
  bool Send(absl::string_view bytes);
  // Reads until the bytes contain `text` or the server closes the connection. Returns these bytes.
  std::string ReadUntil(absl::string_view text);
  // All bytes that come until the server closes the connection.
  std::string ReadAll();

 private:
  OwnedFd fd_;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> tls_;
  bool ok_ = true;
};

struct TestHttpAnswer {
  int status = 0;  // 0: the connection was closed without an answer.
  std::string head;
  std::string body;
};

// Splits what ReadAll() returned.
TestHttpAnswer AnswerOf(const std::string& bytes);

// One request. `headers` are lines, each with its \r\n.
TestHttpAnswer HttpGet(int port, const std::string& target, const std::string& headers = "",
                       const TestTls& tls = {});

}  // namespace systole

#endif  // SYSTOLE_TESTS_SERVER_ADMIN_HTTP_CLIENT_H_
