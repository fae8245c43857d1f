#include "server/admin/http_messages.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "boost/asio/buffer.hpp"
#include "boost/beast/http/empty_body.hpp"
#include "boost/beast/http/error.hpp"
#include "boost/beast/http/message.hpp"
#include "boost/beast/http/parser.hpp"
#include "boost/beast/http/write.hpp"
#include "core/text/loopback_host.h"

namespace systole {
namespace {

namespace http = boost::beast::http;

// The longest name of a host, a port, and a colon between them.
constexpr size_t kMaxHostBytes = 255 + 6;

absl::string_view ViewOf(boost::string_view text) { return {text.data(), text.size()}; }

PageAnswer Refusal(int status, absl::string_view why) {
  return {.status = status, .body = absl::StrCat(why, "\n")};
}

// The host of a `Host: HOST:PORT`.
absl::string_view HostOf(absl::string_view value) {
  const size_t colon = value.rfind(':');
  // A colon may also be a part of the host: "[::1]".
  const bool has_port = colon != absl::string_view::npos &&
                        value.find_first_not_of("0123456789", colon + 1) == absl::string_view::npos;
  return has_port ? value.substr(0, colon) : value;
}

bool MayBeHost(absl::string_view value) {
  return value.size() <= kMaxHostBytes && std::all_of(value.begin(), value.end(), [](char c) {
           return absl::ascii_isalnum(c) || absl::StrContains("-._:[]%", c);
         });
}

// The answer that refuses the request. Nullopt if the request may go to a handler.
std::optional<PageAnswer> Wrong(const http::request_header<>& request, bool has_body,
                                bool only_loopback_names) {
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    PageAnswer answer = Refusal(405, "this port answers only GET and HEAD");
    answer.headers.emplace_back("Allow", "GET, HEAD");
    return answer;
  }
  if (has_body) return Refusal(400, "this port takes no request with a body");
  const auto [begin, end] = request.equal_range(http::field::host);
  const auto hosts = std::distance(begin, end);
  if (hosts > 1 || (hosts == 0 && request.version() >= 11)) {
    return Refusal(400, "want exactly one `Host` header");
  }
  const absl::string_view host = hosts == 0 ? "" : ViewOf(begin->value());
  if (!MayBeHost(host)) return Refusal(400, "the `Host` is invalid");
  if (only_loopback_names && !host.empty() && !IsLoopbackHost(HostOf(host))) {
    return Refusal(421, "this port is only for its own machine; use 127.0.0.1 or localhost");
  }
  if (!absl::StartsWith(ViewOf(request.target()), "/")) {
    return Refusal(400, "want a path that begins with /");
  }
  return std::nullopt;
}

}  // namespace

struct HttpRequestReader::Parser {
  http::request_parser<http::empty_body> http;
};

HttpRequestReader::HttpRequestReader(bool only_loopback_names)
    : only_loopback_names_(only_loopback_names), parser_(std::make_unique<Parser>()) {
  parser_->http.header_limit(kMaxRequestHeadBytes);
}

HttpRequestReader::~HttpRequestReader() = default;

bool HttpRequestReader::Take(absl::string_view bytes) {
  bytes = bytes.substr(0, kMaxRequestHeadBytes - taken_bytes_);
  taken_bytes_ += bytes.size();
  unread_.append(bytes.data(), bytes.size());
  boost::system::error_code error;
  while (!error && !parser_->http.is_header_done() && !unread_.empty()) {
    const size_t parsed = parser_->http.put(boost::asio::buffer(unread_), error);
    unread_.erase(0, parsed);
    if (parsed == 0 && !error) error = http::error::need_more;
  }
  const bool wants_more = !error || error == http::error::need_more;
  if (wants_more && parser_->http.is_header_done()) {
    Judge();
  } else if (error == http::error::header_limit ||
             (wants_more && taken_bytes_ == kMaxRequestHeadBytes)) {
    refusal_ = Refusal(
        431, absl::StrCat("a request to this port has at most ", kMaxRequestHeadBytes, " bytes"));
  } else if (wants_more) {
    return false;
  } else {
    refusal_ = Refusal(400, "this is not a request of HTTP/1.1");
  }
  return true;
}

void HttpRequestReader::Judge() {
  const http::request_header<>& head = parser_->http.get().base();
  is_head_ = head.method() == http::verb::head;
  // If the request does not end with its head, a body follows.
  refusal_ = Wrong(head, /*has_body=*/!parser_->http.is_done(), only_loopback_names_);
  if (refusal_.has_value()) return;
  const absl::string_view target = ViewOf(head.target());
  request_.path = std::string(target.substr(0, target.find('?')));
  const auto [begin, end] = head.equal_range(http::field::authorization);
  for (auto it = begin; it != end; ++it) {
    request_.authorization.emplace_back(ViewOf(it->value()));
  }
}

std::string BytesOf(const PageAnswer& answer, bool is_head) {
  http::response<http::empty_body> response(static_cast<http::status>(answer.status), 11);
  response.set(http::field::content_type, answer.content_type);
  if (answer.next_event == nullptr) response.content_length(answer.body.size());
  response.set(http::field::connection, "close");
  response.set(http::field::cache_control, "no-store");
  response.set("X-Content-Type-Options", "nosniff");
  response.set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
  for (const auto& [name, value] : answer.headers) response.set(name, value);
  std::ostringstream bytes;
  bytes << response.base();
  if (!is_head) bytes << answer.body;
  return std::move(bytes).str();
}

}  // namespace systole
