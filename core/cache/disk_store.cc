#include "core/cache/disk_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/cache/disk_entry.h"
#include "core/status/status_macros.h"
#include "core/storage/local/file_sink.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

// A file's size counts as rounded up to a multiple of this.
constexpr int64_t kBlockBytes = 4096;
// How many values are not written after a write has failed.
constexpr int64_t kPassedOver = 1000;

int64_t DiskCost(int64_t file_bytes) {
  return (file_bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

absl::Status CannotUse(int error, const std::string& folder) {
  return absl::ErrnoToStatus(
      error, absl::StrCat("cannot keep values in '", ForeignText(folder),
                          "'; want a folder that this user may write to, or that can be made"));
}

// Fills `out` with the bytes at `offset`. False if they cannot be read.
bool ReadExactly(const OwnedFd& fd, size_t offset, absl::Span<char> out) {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    offset += static_cast<size_t>(got);
    out.remove_prefix(static_cast<size_t>(got));
  }
  return true;
}

// Opens the file of a value that has at most `size_limit` bytes. Returns the value's size; nullopt
// if the file is missing, too short or too long.
std::optional<size_t> OpenEntry(const std::string& path, int64_t size_limit, OwnedFd& fd) {
  fd = OwnedFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info = {};
  if (!fd.ok() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  if (info.st_size < int64_t{kDiskEntryHeaderBytes} || info.st_size > size_limit) {
    return std::nullopt;
  }
  return static_cast<size_t>(info.st_size) - kDiskEntryHeaderBytes;
}

// Reads a value from its open file into `value`, which has the value's size. False if the file is
// damaged.
bool ReadEntry(const CacheKey& key, const OwnedFd& fd, absl::Span<char> value) {
  std::string header(kDiskEntryHeaderBytes, '\0');
  return ReadExactly(fd, 0, absl::MakeSpan(header)) &&
         ReadExactly(fd, kDiskEntryHeaderBytes, value) &&
         CheckDiskEntry(key, header, absl::string_view(value.data(), value.size())).ok();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiskStore>> DiskStore::Open(const std::string& folder,
                                                           int64_t budget_bytes) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return CannotUse(error.value(), folder);
  const std::string lock_path = absl::StrCat(folder, "/lock");
  OwnedFd lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.ok()) return CannotUse(errno, folder);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return CannotUse(errno, folder);
    return absl::FailedPreconditionError(absl::StrCat("another process keeps its values in '",
                                                      ForeignText(folder),
                                                      "'; give each server a folder of its own"));
  }
  auto store = absl::WrapUnique(new DiskStore(folder, std::move(lock), budget_bytes));
  SYSTOLE_RETURN_IF_ERROR(store->List());
  return store;
}

DiskStore::~DiskStore() {
  // Closing the descriptor would not be enough: the copy of the descriptor in a forked child would
  // keep the lock.
  if (process_ == ::getpid()) ::flock(lock_.get(), LOCK_UN);
}

absl::Status DiskStore::List() {
  std::error_code error;
  MutexLock lock(mu_);
  for (int i = 0; i < 256; ++i) {
    const std::string part = absl::StrCat(folder_, "/", absl::Hex(i, absl::kZeroPad2));
    fs::create_directory(part, error);
    if (error) return CannotUse(error.value(), folder_);
    RemoveStaleTemporaries(part, [](absl::string_view) { return true; });
    // No range-based for: its ++ throws if the folder cannot be read to its end.
    for (fs::directory_iterator at(part, error); !error && at != fs::directory_iterator();
         at.increment(error)) {
      CacheKey key;
      const std::string name = at->path().filename().string();
      if (!ParseDiskEntryName(name, key) || at->path().string() != PathOf(key)) continue;
      std::error_code of_file;  // This file's error, not the folder's.
      const auto size = static_cast<int64_t>(at->file_size(of_file));
      if (of_file || !kept_.Insert(key, KeptSet::kNobody, DiskCost(size), [](const CacheKey&) {})) {
        fs::remove(at->path(), of_file);
      }
    }
    if (error) return CannotUse(error.value(), folder_);
  }
  return absl::OkStatus();
}

std::string DiskStore::PathOf(const CacheKey& key) const {
  const std::string name = DiskEntryName(key);
  return absl::StrCat(folder_, "/", name.substr(0, 2), "/", name);
}

std::optional<int64_t> DiskStore::LimitIfKept(const CacheKey& key, uint64_t user) {
  MutexLock lock(mu_);
  if (!kept_.Find(key, user)) return std::nullopt;
  return kept_.budget();
}

void DiskStore::RemoveDamaged(const CacheKey& key) {
  MutexLock lock(mu_);
  ++damaged_;
  kept_.Remove(key);
  ::unlink(PathOf(key).c_str());
}

std::shared_ptr<const std::string> DiskStore::Find(const CacheKey& key, uint64_t user) {
  const std::optional<int64_t> limit = LimitIfKept(key, user);
  if (!limit.has_value()) return nullptr;
  OwnedFd fd;
  const std::optional<size_t> size = OpenEntry(PathOf(key), *limit, fd);
  auto value = std::make_shared<std::string>(size.value_or(0), '\0');
  if (size.has_value() && ReadEntry(key, fd, absl::MakeSpan(*value))) return value;
  RemoveDamaged(key);
  return nullptr;
}

bool DiskStore::FindInto(const CacheKey& key, uint64_t user, absl::Span<char> out) {
  const std::optional<int64_t> limit = LimitIfKept(key, user);
  if (!limit.has_value()) return false;
  OwnedFd fd;
  const std::optional<size_t> size = OpenEntry(PathOf(key), *limit, fd);
  if (size == out.size() && ReadEntry(key, fd, out)) return true;
  RemoveDamaged(key);
  return false;
}

bool DiskStore::Admits(int64_t bytes) const {
  MutexLock lock(mu_);
  return kept_.Admits(DiskCost(bytes + int64_t{kDiskEntryHeaderBytes}));
}

int64_t DiskStore::RoomFor(int64_t bytes) const {
  MutexLock lock(mu_);
  return kept_.RoomFor(DiskCost(bytes + int64_t{kDiskEntryHeaderBytes}));
}

void DiskStore::Insert(const CacheKey& key, uint64_t user, absl::string_view value, DiskWrite how) {
  const auto bytes = static_cast<int64_t>(value.size() + kDiskEntryHeaderBytes);
  {
    MutexLock lock(mu_);
    if (passed_over_ > 0) {
      --passed_over_;
      return;
    }
    if (kept_.Contains(key) || !kept_.Admits(DiskCost(bytes))) return;
  }
  // The value is added to kept_ once its file can be read. Until then other threads may write the
  // same value.
  absl::Status written = absl::OkStatus();
  {
    absl::StatusOr<std::unique_ptr<FileSink>> sink =
        FileSink::Create(PathOf(key), {.sync = false, .direct = how == DiskWrite::kDirect});
    written = sink.status();
    if (written.ok()) written = (*sink)->Append(DiskEntryHeader(key, value));
    if (written.ok()) written = (*sink)->Append(value);
    if (written.ok()) written = (*sink)->Close();
  }
  MutexLock lock(mu_);
  if (!written.ok()) {
    passed_over_ = kPassedOver;
    return;
  }
  const auto evict = [this](const CacheKey& gone) { ::unlink(PathOf(gone).c_str()); };
  if (!kept_.Insert(key, user, DiskCost(bytes), evict) && !kept_.Contains(key)) {
    ::unlink(PathOf(key).c_str());
  }
}

int64_t DiskStore::used_bytes() const {
  MutexLock lock(mu_);
  return kept_.used();
}

int64_t DiskStore::budget_bytes() const {
  MutexLock lock(mu_);
  return kept_.budget();
}

int64_t DiskStore::damaged_entries() const {
  MutexLock lock(mu_);
  return damaged_;
}

}  // namespace systole
