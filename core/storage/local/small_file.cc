#include "core/storage/local/small_file.h"

#include <memory>

#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/local/file_source.h"

namespace systole {

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t max_bytes) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<FileSource> file, FileSource::Open(path));
  return ReadWhole(*file, max_bytes);
}

}  // namespace systole
