#include "core/credentials/credential_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/descriptor/owned_fd.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

absl::Status Failed(int error, absl::string_view file) {
  // A home folder may be /dev/null, and a path below it gives ENOTDIR.
  if (error == ENOTDIR) error = ENOENT;
  const absl::Status status = absl::ErrnoToStatus(error, absl::StrCat("cannot read ", file));
  if (absl::IsNotFound(status) || absl::IsPermissionDenied(status)) return status;
  return absl::UnavailableError(status.message());
}

}  // namespace

absl::StatusOr<std::string> ReadCredentialFile(const std::string& path, absl::string_view what,
                                               size_t max_bytes) {
  if (path == "/dev/null") return "";
  const std::string file = absl::StrCat(what, " '", ForeignText(path), "'");
  // O_NONBLOCK: opening a FIFO must not block.
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat state = {};
  if (!fd.ok() || ::fstat(fd.get(), &state) != 0) return Failed(errno, file);
  if (!S_ISREG(state.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(
        file, " is not a regular file; name a regular file, or /dev/null for no file"));
  }
  std::string bytes;
  char buffer[4096];
  while (bytes.size() <= max_bytes) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed(errno, file);
    if (got == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(got));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      file, " has more than ", max_bytes, " bytes, so it is another kind of file; check its name"));
}

}  // namespace systole
