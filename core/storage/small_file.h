// A whole file at once, of a size that the caller bounds.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STORAGE_SMALL_FILE_H_
#define SYSTOLE_CORE_STORAGE_SMALL_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/storage/file_source.h"

namespace systole {

struct SmallFile {
  std::string bytes;
  FileIdentity identity;  // When it was opened.
};

// Errors: FileSource::Open and ReadExactlyAt; each names the file. ResourceExhausted, before
// anything is read, if the file has more than `max_bytes`: `path` may name any file.
absl::StatusOr<SmallFile> ReadSmallFile(const std::string& path, uint64_t max_bytes);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_SMALL_FILE_H_
