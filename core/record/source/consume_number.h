// Numbers in the text of an index file.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_CONSUME_NUMBER_H_
#define SYSTOLE_CORE_RECORD_SOURCE_CONSUME_NUMBER_H_

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "absl/strings/string_view.h"

namespace systole {

// Reads a number and the character `end` at the front of `text`, and removes them from `text`.
// Accepts no sign, no capitals, and a leading zero only in hex. False: `text` does not begin with
// such a number and `end`, and is unchanged.
template <typename Int>
bool ConsumeNumber(absl::string_view& text, char end, Int& value, int base = 10) {
  const char* const begin = text.data();
  const char* const limit = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, limit, value, base);
  if (error != std::errc() || stop == limit || *stop != end || *begin == '-') return false;
  if (base == 10 && *begin == '0' && stop - begin > 1) return false;
  if (base > 10 && std::any_of(begin, stop, [](char c) { return c >= 'A' && c <= 'F'; })) {
    return false;
  }
  text.remove_prefix(static_cast<size_t>(stop - begin) + 1);
  return true;
}

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_CONSUME_NUMBER_H_
