// Sizes in bytes as people write them on a command line.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_TEXT_SIZE_TEXT_H_
#define SYSTOLE_CORE_TEXT_SIZE_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace systole {

// A sentence for the help of options that take a size.
inline constexpr char kSizeText[] =
    "SIZE is a size such as 512MB or 4GB (1 KB is 1024 bytes); a plain number is bytes.";

// The number of bytes that `text` means. `text` is a whole number, and may end with a unit: B, or
// one of K, M, G, T and P, with or without B or iB after it. White space may stand before the unit.
// Upper and lower case mean the same. Nullopt for other text, and for numbers beyond an int64_t.
std::optional<int64_t> ParseSizeText(absl::string_view text);

// "512 bytes", "1.5 KB", "117.2 GB": in the largest unit in which the number is at least 1,
// rounded. For sentences that people read. REQUIRES: `bytes` is not negative.
std::string SizeText(int64_t bytes);

}  // namespace systole

#endif  // SYSTOLE_CORE_TEXT_SIZE_TEXT_H_
