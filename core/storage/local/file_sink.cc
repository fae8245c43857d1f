#include "core/storage/local/file_sink.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"

namespace systole {
namespace {

// The folder of `path`, with its '/'. Empty if `path` has no '/'.
absl::string_view FolderOf(absl::string_view path) {
  return path.substr(0, path.size() - BaseName(path).size());
}

// Syncs the folder of `path`. Without this, a renamed file may have its old name after a power cut.
absl::Status SyncFolder(absl::string_view path) {
  const std::string folder = FolderOf(path).empty() ? "." : std::string(FolderOf(path));
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open \"", folder, "\""));
  const int synced = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  // EINVAL: this kind of file system cannot sync folders.
  if (synced != 0 && error != EINVAL) {
    return absl::ErrnoToStatus(error, absl::StrCat("cannot sync \"", folder, "\""));
  }
  return absl::OkStatus();
}

// The parts of a temporary file's name.
struct Temporary {
  absl::string_view base_name;  // The base name of the file that was being written.
  pid_t process = 0;
};

// `.<base name>.<process>.<number>.tmp`, or nullopt.
std::optional<Temporary> ParseTemporary(absl::string_view name) {
  std::vector<absl::string_view> parts = absl::StrSplit(name, '.');
  Temporary temporary;
  uint64_t number;
  if (parts.size() < 5 || !parts.front().empty() || parts.back() != "tmp" ||
      !absl::SimpleAtoi(parts[parts.size() - 2], &number) ||
      !absl::SimpleAtoi(parts[parts.size() - 3], &temporary.process) || temporary.process <= 0) {
    return std::nullopt;
  }
  const size_t tail = parts[parts.size() - 3].size() + parts[parts.size() - 2].size() + 6;
  temporary.base_name = name.substr(1, name.size() - 1 - tail);
  return temporary;
}

// Whether the temporary file may be removed. If `process` runs in another container, kill() does
// not find it, but flock() finds its lock.
bool IsStale(const std::string& path, pid_t process) {
  if (::kill(process, 0) == 0 || errno != ESRCH) return false;
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) != 0;
  ::close(fd);
  return !locked;
}

// InvalidArgument if `path` exists and is not a regular file. Without this check, the rename in
// Close() would replace a device, a pipe, or a link such as /dev/stdout.
absl::Status CheckReplaceable(const std::string& path) {
  struct stat there;
  if (::lstat(path.c_str(), &there) != 0 || S_ISREG(there.st_mode)) return absl::OkStatus();
  const char* const kind = S_ISDIR(there.st_mode)   ? "folder"
                           : S_ISLNK(there.st_mode) ? "link"
                                                    : "device or pipe";
  return absl::InvalidArgumentError(absl::StrCat("\"", ShownName(path), "\" is a ", kind,
                                                 "; want a regular file, or a name that is free"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileSink>> FileSink::Create(const std::string& path,
                                                           const FileSinkOptions& options) {
  if (BaseName(path).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", ShownName(path), "\" names no file to write"));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckReplaceable(path));
  // The number makes the temporary names of this process differ. O_EXCL protects the files of other
  // processes.
  static std::atomic<uint64_t> next_number{0};
  for (int attempt = 0; attempt < 1000; ++attempt) {
    std::string temporary_path = absl::StrCat(FolderOf(path), ".", BaseName(path), ".", ::getpid(),
                                              ".", next_number.fetch_add(1), ".tmp");
    const int fd = ::open(temporary_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      ::flock(fd, LOCK_EX | LOCK_NB);  // IsStale() is false for a locked file.
      return std::unique_ptr<FileSink>(new FileSink(path, std::move(temporary_path), fd, options));
    }
    if (errno != EEXIST && errno != EINTR) {
      return absl::ErrnoToStatus(
          errno, absl::StrCat("cannot create a temporary file for \"", ShownName(path), "\""));
    }
  }
  return absl::AlreadyExistsError(absl::StrCat(
      "\"", FolderOf(path), "\" is full of temporary files of \"", path, "\"; remove them"));
}

FileSink::FileSink(std::string path, std::string temporary_path, int fd,
                   const FileSinkOptions& options)
    : path_(std::move(path)),
      temporary_path_(std::move(temporary_path)),
      options_(options),
      fd_(fd) {}

FileSink::~FileSink() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_path_.c_str());
}

absl::Status FileSink::Fail(absl::Status status) {
  status_ = std::move(status);
  return status_;
}

absl::Status FileSink::WriteOut(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      // EINVAL: the file system requires multiples of a larger size, or the device became full in
      // the middle of a page. An ordinary write is tried next.
      if (errno == EINVAL && is_direct_ && SetDirect(false)) continue;
      return Fail(absl::ErrnoToStatus(errno, absl::StrCat("cannot write \"", path_, "\"")));
    }
    bytes.remove_prefix(static_cast<size_t>(written));
    written_ += static_cast<uint64_t>(written);
  }
  return absl::OkStatus();
}

bool FileSink::SetDirect(bool direct) {
  if (is_direct_ == direct) return true;
  if (::fcntl(fd_, F_SETFL, direct ? O_DIRECT : 0) != 0) return false;
  is_direct_ = direct;
  return true;
}

absl::Status FileSink::WriteDirect(absl::string_view& bytes) {
  const size_t in_page = (written_ + buffer_.size()) % kFilePageBytes;
  const size_t before = in_page == 0 ? 0 : kFilePageBytes - in_page;
  if (bytes.size() < before + kFilePageBytes) return absl::OkStatus();
  const auto address = reinterpret_cast<uintptr_t>(bytes.data()) + before;
  if (address % kFilePageBytes != 0) return absl::OkStatus();
  buffer_.append(bytes.data(), before);
  bytes.remove_prefix(before);
  SYSTOLE_RETURN_IF_ERROR(WriteOut(buffer_));
  buffer_.clear();
  const absl::string_view pages = bytes.substr(0, bytes.size() / kFilePageBytes * kFilePageBytes);
  SetDirect(true);
  SYSTOLE_RETURN_IF_ERROR(WriteOut(pages));
  SetDirect(false);
  bytes.remove_prefix(pages.size());
  return absl::OkStatus();
}

absl::Status FileSink::Append(absl::string_view bytes) {
  SYSTOLE_RETURN_IF_ERROR(status_);
  if (options_.direct) SYSTOLE_RETURN_IF_ERROR(WriteDirect(bytes));
  if (buffer_.size() + bytes.size() < options_.buffer_bytes) {
    buffer_.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  SYSTOLE_RETURN_IF_ERROR(WriteOut(buffer_));
  buffer_.clear();
  if (bytes.size() >= options_.buffer_bytes) return WriteOut(bytes);
  buffer_.append(bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status FileSink::Close() {
  SYSTOLE_RETURN_IF_ERROR(status_);
  SYSTOLE_RETURN_IF_ERROR(WriteOut(buffer_));
  buffer_.clear();
  if (options_.sync && ::fsync(fd_) != 0) {
    return Fail(absl::ErrnoToStatus(errno, absl::StrCat("cannot sync \"", path_, "\"")));
  }
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    return Fail(absl::ErrnoToStatus(
        errno, absl::StrCat("cannot rename \"", temporary_path_, "\" to \"", path_, "\"")));
  }
  const int closed = ::close(fd_);
  fd_ = -1;  // So the destructor removes nothing.
  if (closed != 0 && errno != EINTR) {
    return Fail(absl::ErrnoToStatus(errno, absl::StrCat("cannot close \"", path_, "\"")));
  }
  status_ = absl::FailedPreconditionError(absl::StrCat("\"", path_, "\" is closed already"));
  return options_.sync ? SyncFolder(path_) : absl::OkStatus();
}

absl::Status CheckWritable(const std::string& path) {
  RemoveStaleTemporaries(std::string(FolderOf(path)),
                         [&](absl::string_view base_name) { return base_name == BaseName(path); });
  return FileSink::Create(path).status();
}

void RemoveStaleTemporaries(const std::string& folder,
                            absl::FunctionRef<bool(absl::string_view base_name)> is_ours) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const std::optional<Temporary> temporary = ParseTemporary(name);
    if (!temporary.has_value() || !is_ours(temporary->base_name)) continue;
    const std::string path = entry->path().string();
    if (IsStale(path, temporary->process)) ::unlink(path.c_str());
  }
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes,
                                 const FileSinkOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<FileSink> sink, FileSink::Create(path, options));
  SYSTOLE_RETURN_IF_ERROR(sink->Append(bytes));
  return sink->Close();
}

}  // namespace systole
