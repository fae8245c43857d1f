#include "core/access_token/token_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/descriptor/owned_fd.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// An attempt fails if another process replaces the file while this process waits to lock it.
constexpr int kMaxAttempts = 100;

absl::Status Failed(int error, absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(
      error, absl::StrCat("cannot ", what, " token file '", ForeignText(path), "'"));
}

absl::Status About(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("token file '", ForeignText(path), "': ", status.message()));
}

absl::Status CheckMode(const std::string& path, const struct stat& file) {
  if (!S_ISREG(file.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("token file '", ForeignText(path),
                                                   "' is not a regular file; name a regular file"));
  }
  if ((file.st_mode & (S_IWGRP | S_IRWXO)) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("token file '", ForeignText(path),
                   "' is open to other users, who could read or change the list of tokens; "
                   "run chmod 600 on it (640 if its group must read it)"));
}

// Reads the file from its beginning, but at most one byte more than TokenTable::Parse() accepts.
absl::StatusOr<std::string> ReadAll(int fd, const std::string& path) {
  std::string bytes(kMaxTokenFileBytes + 1, '\0');
  size_t length = 0;
  while (length < bytes.size()) {
    const ssize_t read =
        ::pread(fd, &bytes[length], bytes.size() - length, static_cast<off_t>(length));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return Failed(errno, "read", path);
    if (read == 0) break;
    length += static_cast<size_t>(read);
  }
  bytes.resize(length);
  return bytes;
}

absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed(errno, "write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return ::fsync(fd) == 0 ? absl::OkStatus() : Failed(errno, "write", path);
}

// Replaces the file at `path` by a new file with these bytes. The new file gets the owner, the
// group and the mode of the old file, which are in `old`. So a server that could read the old file
// can read the new file, no matter which user adds the token.
absl::Status Replace(const std::string& path, absl::string_view bytes, const struct stat& old) {
  std::string temporary = absl::StrCat(path, ".XXXXXX");
  const OwnedFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.ok()) return Failed(errno, "replace", path);
  absl::Status status = WriteAll(fd.get(), bytes, path);
  // The mode comes last, because a change of owner may clear bits of it.
  if (status.ok() && (::fchown(fd.get(), old.st_uid, old.st_gid) != 0 ||
                      ::fchmod(fd.get(), old.st_mode & 07777) != 0 ||
                      ::rename(temporary.c_str(), path.c_str()) != 0)) {
    status = Failed(errno, "replace", path);
  }
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

// Opens the file at `path` and locks it. Makes the file if it is missing. Tries again if another
// process replaces the file before this process has the lock.
absl::StatusOr<OwnedFd> OpenLocked(const std::string& path, struct stat& file) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    OwnedFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (!fd.ok() && errno == ELOOP) {
      return absl::InvalidArgumentError(
          absl::StrCat("token file '", ForeignText(path),
                       "' is a link, which would be replaced; name the file that it points to"));
    }
    if (!fd.ok()) return Failed(errno, "open", path);
    while (::flock(fd.get(), LOCK_EX) != 0) {
      if (errno != EINTR) return Failed(errno, "lock", path);
    }
    struct stat there = {};
    if (::fstat(fd.get(), &file) == 0 && ::stat(path.c_str(), &there) == 0 &&
        file.st_ino == there.st_ino && file.st_dev == there.st_dev) {
      return fd;
    }
  }
  return absl::UnavailableError(
      absl::StrCat("token file '", ForeignText(path), "' is replaced again and again; try again"));
}

}  // namespace

TokenFileIdentity IdentityOfTokenFile(const std::string& path) {
  struct stat file = {};
  if (::stat(path.c_str(), &file) != 0) return {};
  return {.mtime_ns = int64_t{file.st_mtim.tv_sec} * 1'000'000'000 + file.st_mtim.tv_nsec,
          .inode = file.st_ino,
          .device = file.st_dev,
          .size_bytes = file.st_size,
          .mode = file.st_mode};
}

absl::StatusOr<TokenTable> ReadTokenFile(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not block.
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat file = {};
  if (!fd.ok() || ::fstat(fd.get(), &file) != 0) return Failed(errno, "open", path);
  SYSTOLE_RETURN_IF_ERROR(CheckMode(path, file));
  SYSTOLE_ASSIGN_OR_RETURN(const std::string bytes, ReadAll(fd.get(), path));
  absl::StatusOr<TokenTable> table = TokenTable::Parse(bytes);
  if (!table.ok()) return About(path, table.status());
  return table;
}

absl::StatusOr<std::string> AddToken(const std::string& path, absl::string_view name,
                                     std::optional<absl::CivilDay> last_day) {
  if (!IsTokenName(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "name '", ForeignName(name), "': want 1 to 128 letters, digits, '_', '-' or '.'"));
  }
  struct stat file = {};
  SYSTOLE_ASSIGN_OR_RETURN(const OwnedFd fd, OpenLocked(path, file));
  SYSTOLE_RETURN_IF_ERROR(CheckMode(path, file));
  SYSTOLE_ASSIGN_OR_RETURN(std::string bytes, ReadAll(fd.get(), path));

  std::array<char, 32> random;
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return absl::ErrnoToStatus(errno, "the kernel gives no random bytes");
  }
  std::string token = absl::WebSafeBase64Escape(absl::string_view(random.data(), random.size()));
  if (!bytes.empty() && bytes.back() != '\n') bytes += '\n';
  bytes += TokenLine(
      {.name = std::string(name), .hash = HashOfToken(token), .last_day = std::move(last_day)});
  // If a server would refuse the new text, the file is not changed.
  if (absl::StatusOr<TokenTable> table = TokenTable::Parse(bytes); !table.ok()) {
    return About(path, table.status());
  }
  SYSTOLE_RETURN_IF_ERROR(Replace(path, bytes, file));
  return token;
}

}  // namespace systole
