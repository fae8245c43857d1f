#include "core/text/foreign_text.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/text/utf8.h"

namespace systole {
namespace {

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
  size_t fits = 0;  // The most bytes of `out` that leave room for `mark`.
  for (size_t at = 0; at < text.size();) {
    uint32_t code_point = 0;
    const size_t sequence = Utf8SequenceBytes(text.substr(at), code_point);
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
