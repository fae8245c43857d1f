#include "core/text/utf8.h"

namespace systole {

size_t Utf8SequenceBytes(absl::string_view text, uint32_t& code_point) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  code_point = first;
  if (first < 0x80) return 1;
  const size_t bytes = first >= 0xf5   ? 0
                       : first >= 0xf0 ? 4
                       : first >= 0xe0 ? 3
                       : first >= 0xc2 ? 2
                                       : 0;
  if (bytes == 0 || bytes > text.size()) return 0;
  code_point = first & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code_point = code_point << 6 | (byte(i) & 0x3f);
  }
  const bool overlong = (bytes == 3 && code_point < 0x800) || (bytes == 4 && code_point < 0x10000);
  const bool surrogate = code_point >= 0xd800 && code_point < 0xe000;
  return overlong || surrogate || code_point > 0x10ffff ? 0 : bytes;
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    uint32_t code_point = 0;
    const size_t bytes = Utf8SequenceBytes(text, code_point);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace systole
