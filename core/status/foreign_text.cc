#include "core/status/foreign_text.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace systole {
namespace {

// The bytes of the UTF-8 sequence that `text` begins with; 0 if it begins with none. REQUIRES: not
// empty. Sets `code_point`.
size_t SequenceBytes(absl::string_view text, uint32_t& code_point) {
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

bool IsPrintable(uint32_t code_point) {
  if (code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0)) return false;
  if (code_point == 0x61c || code_point == 0x200e || code_point == 0x200f) return false;
  if (code_point >= 0x2028 && code_point <= 0x202e) return false;
  return code_point < 0x2066 || code_point > 0x2069;
}

std::string Escaped(absl::string_view bytes) {
  if (bytes == "\n") return "\\n";
  if (bytes == "\r") return "\\r";
  if (bytes == "\t") return "\\t";
  std::string escaped;
  for (const char byte : bytes)
    absl::StrAppendFormat(&escaped, "\\x%02x", static_cast<uint8_t>(byte));
  return escaped;
}

}  // namespace

std::string ForeignText(absl::string_view text, size_t max_bytes) {
  const std::string mark = absl::StrCat("...(", text.size(), " bytes)");
  std::string out;
  size_t fits = 0;  // How much of `out` leaves room for the mark.
  for (size_t at = 0; at < text.size();) {
    uint32_t code_point = 0;
    const size_t sequence = SequenceBytes(text.substr(at), code_point);
    const absl::string_view bytes = text.substr(at, sequence == 0 ? 1 : sequence);
    if (sequence != 0 && IsPrintable(code_point)) {
      out.append(bytes.data(), bytes.size());
    } else {
      out.append(Escaped(bytes));
    }
    if (out.size() > max_bytes) {
      out.resize(fits);
      return out.append(mark);
    }
    if (out.size() + mark.size() <= max_bytes) fits = out.size();
    at += bytes.size();
  }
  return out;
}

}  // namespace systole
