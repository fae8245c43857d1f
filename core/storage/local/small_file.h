// Reads a whole file at once. The caller limits its size.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STORAGE_LOCAL_SMALL_FILE_H_
#define SYSTOLE_CORE_STORAGE_LOCAL_SMALL_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace systole {

// The bytes of the file `path`. Errors are those of FileSource::Open() and ReadWhole().
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t max_bytes);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_LOCAL_SMALL_FILE_H_
