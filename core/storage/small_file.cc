#include "core/storage/small_file.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/status/status_macros.h"

namespace systole {

absl::StatusOr<SmallFile> ReadSmallFile(const std::string& path, uint64_t max_bytes) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<FileSource> file, FileSource::Open(path));
  const uint64_t size = file->identity().size_bytes;
  if (size > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("\"", path, "\" has ", size, " bytes, want at most ", max_bytes));
  }
  SmallFile result{.bytes = std::string(size, '\0'), .identity = file->identity()};
  SYSTOLE_RETURN_IF_ERROR(ReadExactlyAt(*file, 0, absl::MakeSpan(result.bytes)));
  return result;
}

}  // namespace systole
