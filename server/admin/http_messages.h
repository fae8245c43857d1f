// Parses the requests to a small HTTP/1.1 server, and turns its answers into bytes. Only GET and
// HEAD without a body are accepted. A connection has one request.
#ifndef SYSTOLE_SERVER_ADMIN_HTTP_MESSAGES_H_
#define SYSTOLE_SERVER_ADMIN_HTTP_MESSAGES_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace systole {

// The most bytes of a request's first line and its headers together.
inline constexpr size_t kMaxRequestHeadBytes = 8 << 10;

// A request for a page. (HttpRequest of core/http is a request that our own client sends.)
struct PageRequest {
  // The path without the query, which the server ignores.
  std::string path;
  // The values of all `Authorization` headers.
  std::vector<std::string> authorization;
  // See CertificateNames(). Empty without TLS.
  std::vector<std::string> certificate_names;
  // The client's address, as gRPC writes it: "ipv4:192.0.2.1:4711", "ipv6:%5B::1%5D:4711".
  std::string peer;
  // Whether the answer may be a stream of events. False while
  // HttpServerOptions::max_event_streams streams are open.
  bool may_have_events = false;
};

struct PageAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  // Headers beside those that BytesOf() adds to every answer.
  std::vector<std::pair<std::string, std::string>> headers;
  // If set, the answer is a stream of events. After the body, the server calls this function for
  // each event, HttpServerOptions::event_interval apart, until it returns nullopt. Set it only if
  // the request has may_have_events.
  std::function<std::optional<std::string>()> next_event = nullptr;
};

// Reads one request. Single-thread.
class HttpRequestReader {
 public:
  // `only_loopback_names`: refuses requests whose `Host` is not 127.0.0.1, localhost or [::1].
  explicit HttpRequestReader(bool only_loopback_names);
  ~HttpRequestReader();
  HttpRequestReader(const HttpRequestReader&) = delete;
  HttpRequestReader& operator=(const HttpRequestReader&) = delete;

  // Takes the next bytes of the connection. Returns true once the request is complete or known to
  // be invalid. After that, call only the functions below.
  bool Take(absl::string_view bytes);

  // If the request is refused: the answer to send. Nullopt: the request is good.
  const std::optional<PageAnswer>& refusal() const { return refusal_; }
  // The request, if it is good, without `certificate_names`, `peer` and `may_have_events`.
  const PageRequest& request() const { return request_; }
  // Whether the answer must be sent without its body, because the method is HEAD.
  bool is_head() const { return is_head_; }

 private:
  struct Parser;

  // Called when the head (first line and headers) is complete. Sets refusal_ or request_.
  void Judge();

  const bool only_loopback_names_;
  const std::unique_ptr<Parser> parser_;
  size_t taken_bytes_ = 0;  // At most kMaxRequestHeadBytes.
  std::string unread_;      // The taken bytes that are not parsed yet.
  std::optional<PageAnswer> refusal_;
  PageRequest request_;
  bool is_head_ = false;
};

// The answer as bytes; without its body if `is_head`. The headers announce that the connection ends
// after the answer. They forbid browsers to keep the page, to guess its type, to load other files
// and to run scripts. A header of `answer.headers` replaces one of the same name.
std::string BytesOf(const PageAnswer& answer, bool is_head);

}  // namespace systole

#endif  // SYSTOLE_SERVER_ADMIN_HTTP_MESSAGES_H_
