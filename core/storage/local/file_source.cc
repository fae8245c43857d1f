#include "core/storage/local/file_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/interrupt/read_progress.h"
#include "core/status/status_macros.h"
#include "core/storage/store.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The most bytes that one system call reads of a file on a network file system. NoteRead() is
// called after each system call. With larger reads on a slow link, it would be called so late that
// the storage would seem to hang. Most network file systems do not ask their server for more bytes
// at a time.
constexpr size_t kFarPieceBytes = size_t{1} << 20;

// The status of a failed system call. If no file descriptor is left, the message says what to do.
absl::Status SystemError(int error, absl::string_view call, absl::string_view path) {
  const std::string what = absl::StrCat("cannot ", call, " \"", ForeignText(ShownName(path)), "\"");
  if (error == EMFILE || error == ENFILE) {
    return absl::ResourceExhaustedError(absl::StrCat(
        what, ": no file descriptor left; each open shard takes one, raise `ulimit -n`"));
  }
  const absl::Status status = absl::ErrnoToStatus(error, what);
  // ENOTDIR: a part of the path is not a folder. ELOOP: a link leads back to itself. In both cases
  // there is no such file.
  if (error == ENOTDIR || error == ELOOP) return absl::NotFoundError(status.message());
  return status;
}

absl::StatusOr<FileState> StateOf(const struct stat& info, absl::string_view path) {
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", ForeignText(path), "\" is ",
        S_ISDIR(info.st_mode) ? "a folder" : "not a regular file", "; want a regular file"));
  }
  return FileState{
      .size_bytes = static_cast<uint64_t>(info.st_size),
      .mtime_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec,
      .inode = info.st_ino,
      .device = info.st_dev,
  };
}

// Whether the file system of `fd` has its files on another machine, or gets them from a process
// (FUSE). The numbers are those of statfs(2); <linux/magic.h> lacks some of them.
bool IsOfNetwork(int fd) {
  struct statfs info;
  if (::fstatfs(fd, &info) != 0) return false;
  switch (static_cast<uint32_t>(info.f_type)) {
    case 0x00006969:  // NFS
    case 0x0000517B:  // SMB
    case 0xFE534D42:  // SMB2
    case 0xFF534D42:  // CIFS
    case 0x65735546:  // FUSE: mounted buckets, among others
    case 0x00C36400:  // Ceph
    case 0x0BD00BD0:  // Lustre
    case 0x47504653:  // GPFS
    case 0x19830326:  // BeeGFS
    case 0x5346414F:  // AFS
    case 0x01021997:  // 9P
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string FileState::Identity() const { return absl::StrCat(size_bytes, " ", mtime_ns); }

absl::StatusOr<FileState> StatFile(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return SystemError(errno, "stat", path);
  return StateOf(info, path);
}

absl::StatusOr<std::unique_ptr<FileSource>> FileSource::Open(const std::string& path, Where where) {
  int fd;
  do {
    // O_NONBLOCK: opening a named pipe must not wait for a writer. No effect on regular files.
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return SystemError(errno, "open", path);
  absl::Cleanup close_fd = [fd] { ::close(fd); };
  struct stat info;
  if (::fstat(fd, &info) != 0) return SystemError(errno, "stat", path);
  SYSTOLE_ASSIGN_OR_RETURN(const FileState state, StateOf(info, path));
  std::move(close_fd).Cancel();
  const bool may_wait = where == Where::kOnANetwork || IsOfNetwork(fd);
  return std::unique_ptr<FileSource>(new FileSource(path, fd, state, may_wait));
}

FileSource::~FileSource() { ::close(fd_); }

absl::StatusOr<size_t> FileSource::ReadAt(uint64_t offset, absl::Span<char> out) const {
  // Without this line, pread() would refuse an offset of 2^63 or more.
  if (offset >= state_.size_bytes) return 0;
  const size_t piece = may_wait_ ? kFarPieceBytes : out.size();
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t read = ::pread(fd_, out.data() + done, std::min(piece, out.size() - done),
                                 static_cast<off_t>(offset + done));
    if (read < 0) {
      if (errno == EINTR) continue;
      return SystemError(errno, absl::StrCat("read at byte ", offset + done, " of"),
                         BaseName(path_));
    }
    if (read == 0) break;
    NoteRead(static_cast<size_t>(read));
    done += static_cast<size_t>(read);
  }
  return done;
}

absl::Status FileSource::CheckUnchanged() const {
  const auto changed = [this](absl::string_view how) { return ChangedSinceOpened(path_, how); };
  struct stat info;
  if (::stat(path_.c_str(), &info) != 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) return changed("was removed");
    // Every other errno becomes NotFound, because the file cannot be seen at its path. A code such
    // as PermissionDenied would look like a fault of the client.
    return absl::NotFoundError(SystemError(error, "stat", BaseName(path_)).message());
  }
  const absl::StatusOr<FileState> now = StateOf(info, path_);
  if (!now.ok() || now->inode != state_.inode || now->device != state_.device) {
    return changed("was replaced by another file");
  }
  if (now->size_bytes != state_.size_bytes) {
    return changed(
        absl::StrCat("was resized from ", state_.size_bytes, " to ", now->size_bytes, " bytes"));
  }
  if (now->mtime_ns != state_.mtime_ns) return changed("was rewritten");
  return absl::OkStatus();
}

}  // namespace systole
