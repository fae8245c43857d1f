// An HTTP server on this machine for tests. A function of the test gives the answers, which need
// not be correct HTTP.
#ifndef SYSTOLE_TESTS_CORE_HTTP_STUB_HTTP_SERVER_H_
#define SYSTOLE_TESTS_CORE_HTTP_STUB_HTTP_SERVER_H_

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/descriptor/owned_fd.h"
#include "core/http/http_headers.h"

struct ssl_ctx_st;

namespace systole {

// A name that no host can have, because a part of a host's name has at most 63 characters. The
// resolver refuses this name itself, and sends nothing to a name server.
inline const std::string kImpossibleHost(64, 'x');

struct StubRequest {
  std::string method;
  std::string target;  // Path and query.
  HttpHeaders headers;
  std::string body = {};
  int connection = 0;  // The server numbers its connections from 0.
};

// `text` of a URL with each %XX replaced by its byte, as a server reads it. Does not call
// PercentDecoded(), because the stores use that function and the stub must notice its mistakes.
std::string WithoutEscapes(absl::string_view text);

// An answer. Its bytes are sent without any change. Then the connection serves the next request, if
// no other field forbids this.
struct StubAnswer {
  std::string bytes;
  bool closes = false;  // The connection is closed after `bytes`.
  bool hangs = false;   // Nothing more is sent after `bytes`.
  // If not empty: sent after `bytes` again and again, until the client closes the connection.
  std::string endless = {};
  absl::Duration endless_pause = absl::ZeroDuration();
};

// A correct answer, with the length of its body.
StubAnswer Reply(int status, absl::string_view body, const HttpHeaders& headers = {});
// The head of an answer, without a length.
std::string Head(int status, const HttpHeaders& headers);

// A key, and a certificate signed by it. The certificate is also its own authority.
struct StubCertificate {
  std::string pem;
  std::string key_pem;
};
// `subject` is "DNS:NAME" or "IP:ADDRESS".
StubCertificate MakeCertificate(const std::string& subject);

// Thread-safe.
class StubHttpServer {
 public:
  // Called on many threads at a time. A HEAD must be answered without a body.
  using Handler = std::function<StubAnswer(const StubRequest&)>;

  // Listens on a free port of 127.0.0.1, and excludes this address from the environment's proxies.
  // With a certificate, the server speaks TLS.
  explicit StubHttpServer(Handler handler, const StubCertificate* certificate = nullptr);
  // Closes all connections.
  ~StubHttpServer();
  StubHttpServer(const StubHttpServer&) = delete;
  StubHttpServer& operator=(const StubHttpServer&) = delete;

  // The address of `target` on this server.
  std::string Url(absl::string_view target) const;
  int port() const { return port_; }

  std::vector<StubRequest> requests() const ABSL_LOCKS_EXCLUDED(mu_);
  int connections() const ABSL_LOCKS_EXCLUDED(mu_);  // Accepted so far.
  int open_now() const ABSL_LOCKS_EXCLUDED(mu_);
  int most_open() const ABSL_LOCKS_EXCLUDED(mu_);  // The most at one time so far.

 private:
  class Connection;

  void Accept() ABSL_LOCKS_EXCLUDED(mu_);
  void Serve(OwnedFd socket, int number) ABSL_LOCKS_EXCLUDED(mu_);
  void Answer(Connection& connection, int number) ABSL_LOCKS_EXCLUDED(mu_);

  const Handler handler_;
  const std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)> tls_;  // Null: plain TCP.
  int port_ = 0;
  const OwnedFd listener_;

  mutable Mutex mu_;
  std::vector<StubRequest> requests_ ABSL_GUARDED_BY(mu_);
  std::list<int> open_ ABSL_GUARDED_BY(mu_);  // Sockets, each with its own thread.
  CondVar closed_;                            // Signalled when a connection leaves `open_`.
  int accepted_ ABSL_GUARDED_BY(mu_) = 0;
  int most_open_ ABSL_GUARDED_BY(mu_) = 0;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::thread accepting_;  // Last, because it uses the members above.
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_HTTP_STUB_HTTP_SERVER_H_
