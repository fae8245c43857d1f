// A token file on disk. A server watches and reads it, and `systole token` adds to it.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_ACCESS_TOKEN_TOKEN_FILE_H_
#define SYSTOLE_CORE_ACCESS_TOKEN_TOKEN_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/access_token/token_table.h"

namespace systole {

// Differs from an earlier identity of the same path if the file was changed or replaced since.
struct TokenFileIdentity {
  int64_t mtime_ns = 0;
  uint64_t inode = 0;
  uint64_t device = 0;
  int64_t size_bytes = -1;
  uint32_t mode = 0;

  bool operator==(const TokenFileIdentity&) const = default;
};

// The identity of the file at `path` now; links are followed. All fields have their defaults if
// there is no file.
TokenFileIdentity IdentityOfTokenFile(const std::string& path);

// Reads the file.
//   PermissionDenied  other users may read it, or users other than its owner may write to it.
//   Also NotFound, and the errors of TokenTable::Parse. Each message names the path.
absl::StatusOr<TokenTable> ReadTokenFile(const std::string& path);

// Draws a token of 256 random bits, adds its hash to the file, and returns the token's text. A
// missing file is made with mode 0600. The file is replaced as a whole, under a lock, and keeps its
// owner, group and mode. So a reader finds the old file or the new one, and tokens that others add
// at the same time are not lost.
//   InvalidArgument     `name` is not a token name, or `path` is a link or no regular file.
//   Also the errors of ReadTokenFile, and errors of making files in the folder.
absl::StatusOr<std::string> AddToken(const std::string& path, absl::string_view name,
                                     std::optional<absl::CivilDay> last_day);

}  // namespace systole

#endif  // SYSTOLE_CORE_ACCESS_TOKEN_TOKEN_FILE_H_
