// Reads files that hold credentials.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_FILE_H_
#define SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace systole {

// For files that hold one token. STS takes at most 20,000 bytes.
inline constexpr size_t kMaxTokenFileBytes = size_t{32} << 10;

// The bytes of the regular file `path`. /dev/null counts as an empty file, because people name it
// if they want no file. `what` names the file in messages: "token file".
//   NotFound, PermissionDenied   as the system says.
//   FailedPrecondition           it is not a regular file, but for example a folder or a FIFO.
//   ResourceExhausted            it is larger than `max_bytes`, so it is another kind of file.
//   Unavailable                  it cannot be read now.
absl::StatusOr<std::string> ReadCredentialFile(const std::string& path, absl::string_view what,
                                               size_t max_bytes);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_FILE_H_
