#include "core/text/percent_text.h"

#include <cstddef>

namespace systole {
namespace {

// The value of a hex digit; -1 for any other character.
int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::string PercentDecoded(absl::string_view encoded) {
  std::string text;
  text.reserve(encoded.size());
  for (size_t i = 0; i < encoded.size(); ++i) {
    const bool has_digits = encoded[i] == '%' && i + 2 < encoded.size() &&
                            HexDigit(encoded[i + 1]) >= 0 && HexDigit(encoded[i + 2]) >= 0;
    if (has_digits) {
      text += static_cast<char>(HexDigit(encoded[i + 1]) * 16 + HexDigit(encoded[i + 2]));
      i += 2;
    } else {
      text += encoded[i];
    }
  }
  return text;
}

}  // namespace systole
