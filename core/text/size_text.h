// Sizes in bytes as people write them on a command line.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_TEXT_SIZE_TEXT_H_
#define SYSTOLE_CORE_TEXT_SIZE_TEXT_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace systole {

// For the help of options that take a size.
inline constexpr char kSizeText[] =
    "SIZE is a size such as 512MB or 4GB (1 KB is 1024 bytes); a plain number is bytes.";

// The bytes that `text` says: a whole number, and B, or K, M, G, T or P, alone or with B or iB
// behind it, in any case of letters. Nullopt for any other text, and for what an int64_t does not
// hold.
std::optional<int64_t> ParseSizeText(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_CORE_TEXT_SIZE_TEXT_H_
