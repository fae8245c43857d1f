// Parses the requests of a small HTTP/1.1 server, and turns its answers into bytes. Requests are
// GET and HEAD without a body. A connection has one request.
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

// A request's line and headers together.
inline constexpr size_t kMaxRequestHeadBytes = 8 << 10;

// Not core/http's HttpRequest, which a client sends.
struct PageRequest {
  // Without the query, which is not looked at and may hold anything.
  std::string path;
  // The values of `Authorization`.
  std::vector<std::string> authorization;
  // See CertificateNames(). Empty without TLS.
  std::vector<std::string> certificate_names;
  // Written as by gRPC: "ipv4:192.0.2.1:4711", "ipv6:%5B::1%5D:4711".
  std::string peer;
  // Whether the answer may be a stream of events. False if too many are open.
  bool may_have_events = false;
};

struct PageAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  // Headers beside those that every answer has.
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

  // Takes the next bytes of the connection. Returns true if the request is complete, or cannot
  // become a valid one. After Take() has returned true, do not call it again.
  bool Take(absl::string_view bytes);

  // After Take() has returned true: the answer to a request that is refused, or nullopt.
  const std::optional<PageAnswer>& refusal() const { return refusal_; }
  // If there is no refusal: the request, without `certificate_names` and `peer`.
  const PageRequest& request() const { return request_; }
  // Whether the answer must be sent without its body.
  bool is_head() const { return is_head_; }

 private:
  struct Parser;

  // Reads a complete head, and sets refusal_ or request_.
  void Judge();

  const bool only_loopback_names_;
  const std::unique_ptr<Parser> parser_;
  size_t taken_bytes_ = 0;  // At most kMaxRequestHeadBytes.
  std::string unread_;      // The taken bytes that are not parsed yet.
  std::optional<PageAnswer> refusal_;
  PageRequest request_;
  bool is_head_ = false;
};

// The answer as bytes; without its body if `is_head`. Its headers say that the connection ends.
// They forbid browsers to keep the page, to guess its type, to load other files and to run scripts.
std::string BytesOf(const PageAnswer& answer, bool is_head);

}  // namespace systole

#endif  // SYSTOLE_SERVER_ADMIN_HTTP_MESSAGES_H_
