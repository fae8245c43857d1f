#include "server/socket_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"
#include "proto/slots/slot_socket.h"

namespace systole {
namespace {

// An attempt fails if meanwhile the server that had the lock ends and removes the lock's file.
constexpr int kMaxAttempts = 100;

absl::Status CannotLock(int error, const std::string& lock_path) {
  // A file in the place of a folder is reported as a missing folder.
  return absl::ErrnoToStatus(
      error == ENOTDIR ? ENOENT : error,
      absl::StrCat("cannot make '", ForeignText(lock_path),
                   "', which keeps a second server off the socket; --listen unix:PATH needs an "
                   "existing folder that this user may write to"));
}

// ", process 1234" if the server that has the lock wrote its process id into the file.
std::string Holder(int fd) {
  char text[16];
  const ssize_t read = ::pread(fd, text, sizeof(text), 0);
  int pid = 0;
  if (read <= 0 || !absl::SimpleAtoi(absl::string_view(text, static_cast<size_t>(read)), &pid) ||
      pid <= 0) {
    return "";
  }
  return absl::StrCat(", process ", pid);
}

// Whether `fd` is still the file at `path`, which other processes would open.
bool StandsAt(int fd, const std::string& path) {
  struct stat own = {};
  struct stat there = {};
  return ::fstat(fd, &own) == 0 && ::stat(path.c_str(), &there) == 0 &&
         own.st_ino == there.st_ino && own.st_dev == there.st_dev;
}

}  // namespace

absl::StatusOr<SocketLock> SocketLock::Take(const std::string& path) {
  std::string lock_path = absl::StrCat(path, ".lock");
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    OwnedFd fd(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!fd.ok()) return CannotLock(errno, lock_path);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return CannotLock(errno, lock_path);
      return absl::UnavailableError(absl::StrCat(
          "cannot listen on 'unix:", ForeignText(path), "': another server", Holder(fd.get()),
          " serves there; stop it first, or choose another --listen"));
    }
    // A server that ends removes the file. A lock on a file that is removed keeps no server out.
    if (!StandsAt(fd.get(), lock_path)) continue;
    const std::string pid = absl::StrCat(::getpid(), "\n");
    if (::ftruncate(fd.get(), 0) != 0 ||
        ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
      return CannotLock(errno, lock_path);
    }
    SocketLock lock(std::move(fd), std::move(lock_path));
    // A program that is not a Systole server holds no lock, but may listen at `path`.
    SYSTOLE_RETURN_IF_ERROR(RemoveStaleSocket(path));
    return lock;
  }
  return absl::UnavailableError(absl::StrCat("cannot listen on 'unix:", ForeignText(path),
                                             "': other servers start and stop there; try again"));
}

SocketLock::~SocketLock() {
  if (!lock_path_.empty()) ::unlink(lock_path_.c_str());
}

}  // namespace systole
