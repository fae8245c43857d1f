#include "core/trace/trace_context.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace systole {
namespace {

// "00-" 32 digits "-" 16 digits "-" 2 digits.
constexpr size_t kTraceAt = 3;
constexpr size_t kSpanAt = 36;
constexpr size_t kFlagsAt = 53;
constexpr size_t kLength = 55;

constexpr size_t kMaxMembers = 32;
constexpr size_t kMaxKeyOrValueBytes = 256;

// The number in `digits`, which are at most 16 lower-case hex digits. Nullopt for other text.
std::optional<uint64_t> HexNumber(absl::string_view digits) {
  uint64_t number = 0;
  for (const char c : digits) {
    int digit = 0;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else {
      return std::nullopt;
    }
    number = number << 4 | static_cast<uint64_t>(digit);
  }
  return number;
}

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

bool IsKeyCharacter(char c) {
  return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_' || c == '-' || c == '*' ||
         c == '/' || c == '@';
}

bool IsKey(absl::string_view key) {
  return !key.empty() && key.size() <= kMaxKeyOrValueBytes &&
         (absl::ascii_islower(key.front()) || absl::ascii_isdigit(key.front())) &&
         std::all_of(key.begin(), key.end(), IsKeyCharacter);
}

bool IsValue(absl::string_view value) {
  return !value.empty() && value.size() <= kMaxKeyOrValueBytes &&
         std::all_of(value.begin(), value.end(),
                     [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; });
}

}  // namespace

std::string HexOf(const TraceId& trace) {
  return absl::StrFormat("%016x%016x", trace.high, trace.low);
}

std::string HexOf(uint64_t span) { return absl::StrFormat("%016x", span); }

std::optional<TraceContext> ParseTraceParent(absl::string_view text) {
  if (text.size() < kLength || text[kTraceAt - 1] != '-' || text[kSpanAt - 1] != '-' ||
      text[kFlagsAt - 1] != '-') {
    return std::nullopt;
  }
  const std::optional<uint64_t> version = HexNumber(text.substr(0, 2));
  const std::optional<uint64_t> high = HexNumber(text.substr(kTraceAt, 16));
  const std::optional<uint64_t> low = HexNumber(text.substr(kTraceAt + 16, 16));
  const std::optional<uint64_t> span = HexNumber(text.substr(kSpanAt, 16));
  const std::optional<uint64_t> flags = HexNumber(text.substr(kFlagsAt, 2));
  if (!version.has_value() || !high.has_value() || !low.has_value() || !span.has_value() ||
      !flags.has_value()) {
    return std::nullopt;
  }
  if (*version == 0xff || (*version == 0 && text.size() != kLength)) return std::nullopt;
  if (text.size() > kLength && text[kLength] != '-') return std::nullopt;
  const TraceContext context = {
      .trace = {.high = *high, .low = *low}, .span = *span, .sampled = (*flags & 1) != 0};
  if (!context.trace.is_set() || context.span == 0) return std::nullopt;
  return context;
}

std::string TraceParentOf(const TraceContext& context) {
  return absl::StrCat("00-", HexOf(context.trace), "-", HexOf(context.span),
                      context.sampled ? "-01" : "-00");
}

bool IsTraceState(absl::string_view text) {
  if (text.size() > kMaxTraceStateBytes) return false;
  std::vector<absl::string_view> keys;
  for (absl::string_view member : absl::StrSplit(text, ',')) {
    // Blanks are allowed before and after a member, and a member may be empty.
    while (!member.empty() && IsBlank(member.front())) member.remove_prefix(1);
    while (!member.empty() && IsBlank(member.back())) member.remove_suffix(1);
    if (member.empty()) continue;
    const size_t equals = member.find('=');
    if (equals == absl::string_view::npos) return false;
    const absl::string_view key = member.substr(0, equals);
    if (!IsKey(key) || !IsValue(member.substr(equals + 1))) return false;
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) return false;
    keys.push_back(key);
  }
  return !keys.empty() && keys.size() <= kMaxMembers;
}

}  // namespace systole
