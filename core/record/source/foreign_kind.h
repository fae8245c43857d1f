// Guesses the kind of a file that is not a shard, from its first bytes.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_FOREIGN_KIND_H_
#define SYSTOLE_CORE_RECORD_SOURCE_FOREIGN_KIND_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace systole {

// ForeignKind() looks at this many bytes of a file's beginning.
inline constexpr size_t kMagicBytes = 8;

// "it is compressed with gzip; .." for a file that begins with `begin`; empty if no known kind
// begins like this. A shard can begin with any bytes, so call this only for a file in which no
// record was found.
std::string ForeignKind(absl::string_view begin);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_FOREIGN_KIND_H_
