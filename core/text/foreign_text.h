// Makes text that comes from outside (a peer, a file's name, a file's content) fit for a message, a
// terminal or a line of a log. The text then stays on its line, moves no cursor and has a bounded
// length.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_TEXT_FOREIGN_TEXT_H_
#define SYSTOLE_CORE_TEXT_FOREIGN_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace systole {

// Enough for any sensible name.
inline constexpr size_t kMaxForeignNameBytes = 160;
// Enough for any sensible message.
inline constexpr size_t kMaxForeignTextBytes = 2048;

// `text`, in which each byte of a character that is not printable is written as \n, \t, .. or \x1b.
// Not printable are control characters (C0, DEL, C1), bytes that are not UTF-8, line breaks such as
// U+2028 and U+2029, and the marks that change the direction of text. Other UTF-8 stays. Returns at
// most `max_bytes`. If the text was cut, the last bytes say how long it was. A backslash stays as
// it is, so ForeignText() of the result is the result itself. REQUIRES: max_bytes >= 40.
std::string ForeignText(absl::string_view text, size_t max_bytes = kMaxForeignTextBytes);

// ForeignText() for a name.
inline std::string ForeignName(absl::string_view name) {
  return ForeignText(name, kMaxForeignNameBytes);
}

}  // namespace systole

#endif  // SYSTOLE_CORE_TEXT_FOREIGN_TEXT_H_
