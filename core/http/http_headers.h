// The headers of requests and answers, and the values that Systole reads. A server writes these
// values, so each parser takes any bytes.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_HTTP_HTTP_HEADERS_H_
#define SYSTOLE_CORE_HTTP_HTTP_HEADERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace systole {

// Names and values, in order. Names are in lower case.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The value of the first header of this name, empty if there is none. A view into `headers`.
absl::string_view FindHeader(const HttpHeaders& headers, absl::string_view name);

// Removes all headers of this name.
void RemoveHeader(HttpHeaders& headers, absl::string_view name);

// Parses a line "Name: value" of an answer; nullopt for any other line. Blanks around the value are
// removed.
std::optional<std::pair<std::string, std::string>> ParseHeaderLine(absl::string_view line);

// Whether a request may have this header. The name must be in lower case. The value must be
// printable ASCII and not empty, so it cannot end its line and begin another header.
bool IsSendableHeader(absl::string_view name, absl::string_view value);

// "bytes 0-99/1000", "bytes 0-99/*", or "bytes */1000".
struct ContentRange {
  // The bytes [begin, end) of the object. Both are 0 if no byte of the asked range exists.
  uint64_t begin = 0;
  uint64_t end = 0;
  std::optional<uint64_t> total;  // Bytes of the whole object; nullopt: the server does not say.
};
// Parses the value of a Content-Range header. nullopt if the value has another form or contradicts
// itself. All numbers are below 2^63.
std::optional<ContentRange> ParseContentRange(absl::string_view value);

// Parses a number of bytes below 2^63 that is written in digits only. nullopt for any other value.
std::optional<uint64_t> ParseContentLength(absl::string_view value);

// How long a server asks to wait. `value` is the answer's Retry-After header: a number of seconds,
// or the date when the wait ends. In the second case the wait begins at `date`, the answer's Date
// header. So no clock is needed, and the wait is right even if the server's clock is wrong. The
// result is at least 0 and at most a day. nullopt if a header that is needed is missing or
// malformed.
std::optional<absl::Duration> ParseRetryAfter(absl::string_view value, absl::string_view date);

// Returns `value` if it is a strong ETag, with its quotes. Returns "" if `value` is a weak ETag,
// malformed, or longer than `max_bytes`. While an object has the same strong ETag, it has the same
// bytes.
std::string StrongEtag(absl::string_view value, size_t max_bytes);

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_HTTP_HEADERS_H_
