// Addresses of the web: parsed, resolved, and shown without their secrets.
//   http[s]://host[:port][/path][?query]
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_HTTP_HTTP_URL_H_
#define SYSTOLE_CORE_HTTP_HTTP_URL_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace systole {

// The most bytes of an address. Servers refuse longer ones.
inline constexpr size_t kMaxUrlBytes = 8192;

struct HttpUrl {
  std::string scheme;  // "http" or "https".
  std::string host;    // In lower case. An IPv6 address has its brackets.
  int port = 0;        // The scheme's own port if none is written.
  std::string target;  // Path and query as they are written. Begins with '/'.

  // "scheme://host:port". Addresses with the same origin lead to the same server program.
  std::string Origin() const;
  // An address from which ParseHttpUrl() makes an equal HttpUrl.
  std::string Text() const;
};

// Parses an address of the form above. InvalidArgument, with the reason and the remedy, for
// anything else: another scheme, a user name or password, a fragment, an impossible host or port,
// bytes that are not printable ASCII. Percent-encoding is kept as it is written.
absl::StatusOr<HttpUrl> ParseHttpUrl(absl::string_view text);

// Resolves `reference`, the value of a Location header in the answer to a request for `at`. A
// fragment is dropped. Errors of ParseHttpUrl().
absl::StatusOr<HttpUrl> ResolveHttpUrl(const HttpUrl& at, absl::string_view reference);

// Returns `text`, which may be any text, as messages show it: the result of ShownAddress()
// (core/text/web_address.h), escaped and of bounded length (ForeignText).
std::string ShownUrl(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_HTTP_URL_H_
