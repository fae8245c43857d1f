// The file of one kept value. It has a magic number with a version, the key, the value's size and
// hash, and the value. A file with other contents, or with a hash that does not match, is damaged.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_CACHE_DISK_ENTRY_H_
#define SYSTOLE_CORE_CACHE_DISK_ENTRY_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/cache/cache_key.h"

namespace systole {

inline constexpr size_t kDiskEntryHeaderBytes = 48;

// The file's bytes up to the value.
std::string DiskEntryHeader(const CacheKey& key, absl::string_view value);

// `header` is the first kDiskEntryHeaderBytes of a file, and `value` is all its other bytes. OK if
// the file has this value for this key.
//   DataLoss  the file is damaged, has another key, or is not a cache file of this version. The
//             message says what is wrong.
absl::Status CheckDiskEntry(const CacheKey& key, absl::string_view header, absl::string_view value);

// The file's name is the key as 32 hex digits. ParseDiskEntryName() is false for any other name.
std::string DiskEntryName(const CacheKey& key);
bool ParseDiskEntryName(absl::string_view name, CacheKey& key);

}  // namespace systole

#endif  // SYSTOLE_CORE_CACHE_DISK_ENTRY_H_
