#include "core/http/http_headers.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace systole {
namespace {

// A character of a header's name (RFC 9110, tchar).
bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(c) || absl::StrContains("!#$%&'*+-.^_`|~", c);
}

bool IsName(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), IsNameCharacter);
}

std::optional<absl::Time> ParseHttpDate(absl::string_view value) {
  absl::Time time;
  if (value.size() > 40 ||
      !absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", std::string(value), &time, nullptr)) {
    return std::nullopt;
  }
  return time;
}

}  // namespace

absl::string_view FindHeader(const HttpHeaders& headers, absl::string_view name) {
  for (const auto& [each, value] : headers) {
    if (each == name) return value;
  }
  return "";
}

void RemoveHeader(HttpHeaders& headers, absl::string_view name) {
  std::erase_if(headers, [name](const auto& header) { return header.first == name; });
}

std::optional<std::pair<std::string, std::string>> ParseHeaderLine(absl::string_view line) {
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos || !IsName(line.substr(0, colon))) return std::nullopt;
  return std::pair(absl::AsciiStrToLower(line.substr(0, colon)),
                   std::string(absl::StripAsciiWhitespace(line.substr(colon + 1))));
}

bool IsSendableHeader(absl::string_view name, absl::string_view value) {
  return IsName(name) && name == absl::AsciiStrToLower(name) && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](char c) { return absl::ascii_isprint(c); });
}

std::optional<uint64_t> ParseContentLength(absl::string_view value) {
  int64_t bytes = 0;
  if (value.empty() || value.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(value, &bytes)) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(bytes);
}

std::optional<ContentRange> ParseContentRange(absl::string_view value) {
  if (value.size() < 6 || !absl::EqualsIgnoreCase(value.substr(0, 6), "bytes ")) {
    return std::nullopt;
  }
  value.remove_prefix(6);
  const size_t slash = value.find('/');
  if (slash == absl::string_view::npos) return std::nullopt;
  ContentRange range;
  if (const absl::string_view total = value.substr(slash + 1); total != "*") {
    range.total = ParseContentLength(total);
    if (!range.total.has_value()) return std::nullopt;
  }
  value = value.substr(0, slash);
  if (value == "*") return range.total.has_value() ? std::optional(range) : std::nullopt;
  const size_t dash = value.find('-');
  if (dash == absl::string_view::npos) return std::nullopt;
  const std::optional<uint64_t> first = ParseContentLength(value.substr(0, dash));
  const std::optional<uint64_t> last = ParseContentLength(value.substr(dash + 1));
  if (!first.has_value() || !last.has_value() || *first > *last || *last == INT64_MAX) {
    return std::nullopt;
  }
  range.begin = *first;
  range.end = *last + 1;
  if (range.total.has_value() && range.end > *range.total) return std::nullopt;
  return range;
}

std::optional<absl::Duration> ParseRetryAfter(absl::string_view value, absl::string_view date) {
  absl::Duration wait;
  if (const std::optional<uint64_t> seconds = ParseContentLength(value); seconds.has_value()) {
    wait = absl::Seconds(static_cast<int64_t>(*seconds));
  } else {
    const std::optional<absl::Time> until = ParseHttpDate(value);
    const std::optional<absl::Time> now = ParseHttpDate(date);
    if (!until.has_value() || !now.has_value()) return std::nullopt;
    wait = *until - *now;
  }
  return std::clamp(wait, absl::ZeroDuration(), absl::Hours(24));
}

std::string StrongEtag(absl::string_view value, size_t max_bytes) {
  if (value.size() < 2 || value.size() > max_bytes || value.front() != '"' || value.back() != '"') {
    return "";
  }
  const absl::string_view inner = value.substr(1, value.size() - 2);
  const bool fit = std::all_of(inner.begin(), inner.end(),
                               [](char c) { return absl::ascii_isgraph(c) && c != '"'; });
  return fit ? std::string(value) : "";
}

}  // namespace systole
