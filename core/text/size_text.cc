#include "core/text/size_text.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace systole {
namespace {

constexpr absl::string_view kPrefixes = "kmgtp";

}  // namespace

std::optional<int64_t> ParseSizeText(absl::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  int64_t number = 0;
  if (!absl::SimpleAtoi(text.substr(0, digits), &number)) return std::nullopt;
  const std::string lower =
      absl::AsciiStrToLower(absl::StripLeadingAsciiWhitespace(text.substr(digits)));
  absl::string_view unit = lower;
  if (unit.empty() || unit == "b") return number;
  const size_t power = kPrefixes.find(unit[0]);
  unit.remove_prefix(1);
  if (power == kPrefixes.npos || (!unit.empty() && unit != "b" && unit != "ib")) {
    return std::nullopt;
  }
  const size_t shift = 10 * (power + 1);
  if (number > (std::numeric_limits<int64_t>::max() >> shift)) return std::nullopt;
  return number << shift;
}

std::string SizeText(int64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, bytes == 1 ? " byte" : " bytes");
  auto number = static_cast<double>(bytes) / 1024;
  size_t power = 0;
  // 1023.95 would be rounded to 1024.0.
  while (number >= 1023.95 && power + 1 < kPrefixes.size()) {
    number /= 1024;
    ++power;
  }
  return absl::StrFormat("%.1f %cB", number, absl::ascii_toupper(kPrefixes[power]));
}

}  // namespace systole
