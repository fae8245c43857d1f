#include "tests/server/admin/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "openssl/err.h"
#include "openssl/ssl.h"

namespace systole {

TestHttpConnection::TestHttpConnection(int port, const TestTls& tls)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), tls_(nullptr, SSL_free) {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  SYSTOLE_CHECK(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0);
  if (tls.ca.empty()) return;
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                             SSL_CTX_free);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SYSTOLE_CHECK(SSL_CTX_load_verify_locations(context.get(), tls.ca.c_str(), nullptr) == 1);
  if (!tls.certificate.empty()) {
    SYSTOLE_CHECK(SSL_CTX_use_certificate_chain_file(context.get(), tls.certificate.c_str()) == 1 &&
                  SSL_CTX_use_PrivateKey_file(context.get(), tls.key.c_str(), SSL_FILETYPE_PEM) ==
                      1);
  }
  tls_.reset(SSL_new(context.get()));
  SSL_set_fd(tls_.get(), fd_.get());
  ok_ = SSL_connect(tls_.get()) == 1;
  ERR_clear_error();
}

TestHttpConnection::~TestHttpConnection() = default;

bool TestHttpConnection::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent =
        tls_ != nullptr
            ? SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size()))
            : static_cast<int>(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::string TestHttpConnection::ReadAll() { return ReadUntil(""); }

std::string TestHttpConnection::ReadUntil(absl::string_view text) {
  std::string all;
  char buffer[4096];
  while (text.empty() || !absl::StrContains(all, text)) {
    const auto got = tls_ != nullptr
                         ? SSL_read(tls_.get(), buffer, sizeof(buffer))
                         : static_cast<int>(::recv(fd_.get(), buffer, sizeof(buffer), 0));
    if (got <= 0) return all;
    all.append(buffer, static_cast<size_t>(got));
  }
  return all;
}

TestHttpAnswer AnswerOf(const std::string& bytes) {
  TestHttpAnswer answer;
  const size_t end = bytes.find("\r\n\r\n");
  if (end == std::string::npos) return answer;
  answer.head = bytes.substr(0, end + 2);
  answer.body = bytes.substr(end + 4);
  SYSTOLE_CHECK(absl::SimpleAtoi(answer.head.substr(answer.head.find(' ') + 1, 3), &answer.status));
  return answer;
}

TestHttpAnswer HttpGet(int port, const std::string& target, const std::string& headers,
                       const TestTls& tls) {
  TestHttpConnection connection(port, tls);
  connection.Send(
      absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: 127.0.0.1\r\n", headers, "\r\n"));
  return AnswerOf(connection.ReadAll());
}

}  // namespace systole
