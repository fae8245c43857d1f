#include "tests/core/http/stub_http_server.h"

#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status/check.h"
#include "openssl/bio.h"
#include "openssl/evp.h"
#include "openssl/pem.h"
#include "openssl/ssl.h"
#include "openssl/x509v3.h"
#include "tests/loopback_socket.h"

namespace systole {
namespace {

// The PEM text that `write` writes.
template <typename Write>
std::string PemOf(const Write& write) {
  BIO* const memory = BIO_new(BIO_s_mem());
  SYSTOLE_CHECK(write(memory) == 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory, &text);
  std::string pem(text, static_cast<size_t>(size));
  BIO_free(memory);
  return pem;
}

SSL_CTX* TlsOf(const StubCertificate* certificate) {
  if (certificate == nullptr) return nullptr;
  SSL_CTX* const tls = SSL_CTX_new(TLS_server_method());
  BIO* const cert_bio = BIO_new_mem_buf(certificate->pem.data(), -1);
  BIO* const key_bio = BIO_new_mem_buf(certificate->key_pem.data(), -1);
  X509* const cert = PEM_read_bio_X509(cert_bio, nullptr, nullptr, nullptr);
  EVP_PKEY* const key = PEM_read_bio_PrivateKey(key_bio, nullptr, nullptr, nullptr);
  SYSTOLE_CHECK(SSL_CTX_use_certificate(tls, cert) == 1);
  SYSTOLE_CHECK(SSL_CTX_use_PrivateKey(tls, key) == 1);
  EVP_PKEY_free(key);
  X509_free(cert);
  BIO_free(key_bio);
  BIO_free(cert_bio);
  return tls;
}

std::optional<StubRequest> ParseRequest(absl::string_view head) {
  const std::vector<absl::string_view> lines = absl::StrSplit(head, "\r\n");
  const std::vector<std::string> first = absl::StrSplit(lines[0], ' ');
  if (first.size() != 3) return std::nullopt;
  StubRequest request = {.method = first[0], .target = first[1], .headers = {}};
  for (const absl::string_view line : lines) {
    if (auto header = ParseHeaderLine(line); header.has_value()) {
      request.headers.push_back(*std::move(header));
    }
  }
  return request;
}

}  // namespace

std::string Head(int status, const HttpHeaders& headers) {
  std::string head = absl::StrCat("HTTP/1.1 ", status, " Words\r\n");
  for (const auto& [name, value] : headers) absl::StrAppend(&head, name, ": ", value, "\r\n");
  return head + "\r\n";
}

std::string WithoutEscapes(absl::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    uint32_t byte = 0;
    if (text[i] == '%' && i + 2 < text.size() && absl::ascii_isxdigit(text[i + 1]) &&
        absl::SimpleHexAtoi(text.substr(i + 1, 2), &byte)) {
      bytes += static_cast<char>(byte);
      i += 2;
    } else {
      bytes += text[i];
    }
  }
  return bytes;
}

StubAnswer Reply(int status, absl::string_view body, const HttpHeaders& headers) {
  HttpHeaders all = headers;
  all.emplace_back("Content-Length", absl::StrCat(body.size()));
  return {.bytes = absl::StrCat(Head(status, all), body)};
}

StubCertificate MakeCertificate(const std::string& subject) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const cert = X509_new();
  SYSTOLE_CHECK(key != nullptr && cert != nullptr);
  X509_set_version(cert, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
  X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
  X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
  X509_set_pubkey(cert, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("stub"), -1, -1, 0);
  X509_set_issuer_name(cert, X509_get_subject_name(cert));
  X509_EXTENSION* const names =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, subject.c_str());
  SYSTOLE_CHECK(names != nullptr && X509_add_ext(cert, names, -1) == 1);
  X509_EXTENSION_free(names);
  SYSTOLE_CHECK(X509_sign(cert, key, EVP_sha256()) > 0);
  StubCertificate made = {.pem = PemOf([cert](BIO* to) { return PEM_write_bio_X509(to, cert); }),
                          .key_pem = PemOf([key](BIO* to) {
                            return PEM_write_bio_PrivateKey(to, key, nullptr, nullptr, 0, nullptr,
                                                            nullptr);
                          })};
  X509_free(cert);
  EVP_PKEY_free(key);
  return made;
}

class StubHttpServer::Connection {
 public:
  Connection(int fd, SSL_CTX* tls) : fd_(fd), tls_(nullptr, &SSL_free) {
    if (tls == nullptr) return;
    tls_.reset(SSL_new(tls));
    SSL_set_fd(tls_.get(), fd_);
    good_ = SSL_accept(tls_.get()) == 1;
  }

  bool good() const { return good_; }

  bool Send(absl::string_view bytes) {
    while (!bytes.empty()) {
      const int most = static_cast<int>(std::min<size_t>(bytes.size(), 1 << 20));
      const ssize_t sent = tls_ != nullptr
                               ? SSL_write(tls_.get(), bytes.data(), most)
                               : ::send(fd_, bytes.data(), static_cast<size_t>(most), 0);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // Appends the bytes that come next. False if the connection has ended.
  bool Receive(std::string& to) {
    char buffer[4096];
    const ssize_t got = tls_ != nullptr ? SSL_read(tls_.get(), buffer, sizeof(buffer))
                                        : ::recv(fd_, buffer, sizeof(buffer), 0);
    if (got <= 0) return false;
    to.append(buffer, static_cast<size_t>(got));
    return true;
  }

 private:
  const int fd_;
  std::unique_ptr<SSL, void (*)(SSL*)> tls_;
  bool good_ = true;
};

StubHttpServer::StubHttpServer(Handler handler, const StubCertificate* certificate)
    : handler_(std::move(handler)),
      tls_(TlsOf(certificate), &SSL_CTX_free),
      listener_(ListenOnLoopback(port_)) {
  ::signal(SIGPIPE, SIG_IGN);  // A client may leave at any time.
  // A proxy that the environment names cannot reach servers of this machine.
  ::setenv("no_proxy", "127.0.0.1", 1);
  accepting_ = std::thread([this] { Accept(); });
}

StubHttpServer::~StubHttpServer() {
  {
    MutexLock lock(mu_);
    ending_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }
  accepting_.join();
  MutexLock lock(mu_);
  while (!open_.empty()) closed_.Wait(mu_);
}

std::string StubHttpServer::Url(absl::string_view target) const {
  return absl::StrCat(tls_ == nullptr ? "http" : "https", "://127.0.0.1:", port_, target);
}

std::vector<StubRequest> StubHttpServer::requests() const {
  MutexLock lock(mu_);
  return requests_;
}

int StubHttpServer::connections() const {
  MutexLock lock(mu_);
  return accepted_;
}

int StubHttpServer::open_now() const {
  MutexLock lock(mu_);
  return static_cast<int>(open_.size());
}

int StubHttpServer::most_open() const {
  MutexLock lock(mu_);
  return most_open_;
}

void StubHttpServer::Accept() {
  while (true) {
    OwnedFd client = AcceptOnLoopback(listener_);
    MutexLock lock(mu_);
    if (!client.ok() || ending_) return;
    open_.push_back(client.get());
    most_open_ = std::max(most_open_, static_cast<int>(open_.size()));
    const int number = accepted_++;
    // The thread is detached, because ThreadSanitizer reports each thread that was not joined as a
    // leak, and some processes never destroy their server. The destructor waits until `open_` is
    // empty.
    std::thread([this, number, socket = std::move(client)]() mutable {
      Serve(std::move(socket), number);
    }).detach();
  }
}

void StubHttpServer::Serve(OwnedFd socket, int number) {
  {
    Connection connection(socket.get(), tls_.get());
    if (connection.good()) Answer(connection, number);
  }
  MutexLock lock(mu_);
  open_.remove(socket.get());
  closed_.SignalAll();
  // The socket is closed under the lock, too. So each descriptor in `open_` is that of an open
  // connection.
  const OwnedFd closed = std::move(socket);
}

void StubHttpServer::Answer(Connection& connection, int number) {
  std::string received;
  while (true) {
    size_t end = received.find("\r\n\r\n");
    if (end == std::string::npos) {
      if (!connection.Receive(received)) return;
      if (received[0] != '\x16') continue;
      connection.Send(Reply(400, "this is TLS").bytes);  // Real servers do so, too.
      return;
    }
    std::optional<StubRequest> request = ParseRequest(received.substr(0, end));
    if (!request.has_value()) return;
    received.erase(0, end + 4);
    const size_t length =
        ParseContentLength(FindHeader(request->headers, "content-length")).value_or(0);
    if (!FindHeader(request->headers, "expect").empty()) connection.Send(Head(100, {}));
    while (received.size() < length) {
      if (!connection.Receive(received)) return;
    }
    request->body = received.substr(0, length);
    received.erase(0, length);
    request->connection = number;
    {
      MutexLock lock(mu_);
      requests_.push_back(*request);
    }
    const StubAnswer answer = handler_(*request);
    if (!connection.Send(answer.bytes) || answer.closes) return;
    std::string ignored;
    if (answer.hangs) {
      while (connection.Receive(ignored)) ignored.clear();
      return;
    }
    while (!answer.endless.empty()) {
      if (!connection.Send(answer.endless)) return;
      std::this_thread::sleep_for(absl::ToChronoMicroseconds(answer.endless_pause));
    }
  }
}

}  // namespace systole
