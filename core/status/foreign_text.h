// Text that somebody else decided (a peer, a file's name, a file's content), made fit for a
// message, a terminal or a line of a log: it stays on its line, moves no cursor and has a bounded
// length.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STATUS_FOREIGN_TEXT_H_
#define SYSTOLE_CORE_STATUS_FOREIGN_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace systole {

// Room for any sensible name.
inline constexpr size_t kMaxForeignNameBytes = 160;
// Room for any sensible message.
inline constexpr size_t kMaxForeignTextBytes = 2048;

// `text` with every byte that is no printable character written as \n, \t, .. or \x1b: control
// characters (C0, DEL, C1), bytes that are no UTF-8, and what turns lines or their direction
// (U+2028 and U+2029, the bidirectional marks). Other UTF-8 stays. At most `max_bytes` come back,
// of which the last say how long the text was if it was cut. A backslash stays one, so text that
// went through here comes out of a second time as it was.
// REQUIRES: max_bytes >= 40.
std::string ForeignText(absl::string_view text, size_t max_bytes = kMaxForeignTextBytes);

// The same for a name.
inline std::string ForeignName(absl::string_view name) {
  return ForeignText(name, kMaxForeignNameBytes);
}

}  // namespace systole

#endif  // SYSTOLE_CORE_STATUS_FOREIGN_TEXT_H_
