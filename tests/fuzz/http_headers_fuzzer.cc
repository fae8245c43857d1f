// Reads any bytes as a header line, and the line's value as each kind of value that our code reads.
// Accepted values are within bounds, and no part of a value contradicts another part.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/http/http_headers.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(http_headers, const uint8_t* data, size_t size) {
  using namespace systole;
  const absl::string_view line(reinterpret_cast<const char*>(data), size);
  const auto header = ParseHeaderLine(line);
  if (!header.has_value()) return 0;
  const auto& [name, value] = *header;
  SYSTOLE_CHECK(value.empty() || !IsSendableHeader(name, value) ||
                value.find_first_of("\r\n") == std::string::npos);
  constexpr uint64_t kMost = INT64_MAX;
  if (const auto range = ParseContentRange(value); range.has_value()) {
    SYSTOLE_CHECK(range->begin <= range->end && range->end <= kMost);
    SYSTOLE_CHECK(!range->total.has_value() || range->end <= *range->total);
    SYSTOLE_CHECK(range->end > 0 || range->total.has_value());
    const std::string total = range->total.has_value() ? absl::StrCat(*range->total) : "*";
    const std::string same =
        range->end == 0 ? absl::StrCat("bytes */", total)
                        : absl::StrCat("bytes ", range->begin, "-", range->end - 1, "/", total);
    const auto again = ParseContentRange(same);
    SYSTOLE_CHECK(again.has_value() && again->begin == range->begin && again->end == range->end);
  }
  if (const auto bytes = ParseContentLength(value); bytes.has_value()) {
    SYSTOLE_CHECK(*bytes <= kMost);
  }
  for (const char* date : {"", "Wed, 21 Oct 2026 07:28:00 GMT"}) {
    const auto wait = ParseRetryAfter(value, date);
    if (!wait.has_value()) continue;
    SYSTOLE_CHECK(*wait >= absl::ZeroDuration() && *wait <= absl::Hours(24));
  }
  const std::string etag = StrongEtag(value, 64);
  SYSTOLE_CHECK(etag.size() <= 64 && (etag.empty() || IsSendableHeader("if-match", etag)));
  return 0;
}
