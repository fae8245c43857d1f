#include "core/memory/sealed_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace systole {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
constexpr absl::string_view kAddSeals = "F_ADD_SEALS";

absl::Status Refused(int error, absl::string_view call, int64_t bytes) {
  const std::string what = absl::StrCat(call, " for ", bytes, " bytes of shared memory");
  if (error == EINVAL && call == kAddSeals) {
    return absl::UnimplementedError(
        "this system has no seal against later writing (F_SEAL_FUTURE_WRITE), which shared memory "
        "needs: want Linux 5.1 or newer");
  }
  if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOSPC) {
    return absl::ResourceExhaustedError(
        absl::StrCat(absl::ErrnoToStatus(error, what).message(),
                     "; raise `ulimit -n`, or lower the server's --memory-budget"));
  }
  return absl::ErrnoToStatus(error, what);
}

absl::StatusOr<MappedPages> MapPages(int fd, int64_t bytes, int protection) {
  // MAP_POPULATE maps all pages at once. Otherwise each page would cause a fault, which costs more
  // than copying the page.
  void* data =
      ::mmap(nullptr, static_cast<size_t>(bytes), protection, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (data == MAP_FAILED) return Refused(errno, "mmap", bytes);
  return MappedPages(static_cast<uint8_t*>(data), bytes);
}

}  // namespace

MappedPages::MappedPages(MappedPages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MappedPages& MappedPages::operator=(MappedPages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedPages::~MappedPages() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(bytes_));
}

absl::StatusOr<SealedMemory> SealedMemory::Create(int64_t bytes) {
  static std::atomic<uint64_t> created = 0;
  if (bytes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared memory of ", bytes, " bytes was asked for, want 1 or more"));
  }
  OwnedFd fd(::memfd_create("systole-slot", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.ok()) return Refused(errno, "memfd_create", bytes);
  // fallocate() also sets the size.
  int error = 0;
  do {
    error = ::fallocate(fd.get(), 0, 0, bytes) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error != 0) return Refused(error, "fallocate", bytes);
  absl::StatusOr<MappedPages> pages = MapPages(fd.get(), bytes, PROT_READ | PROT_WRITE);
  if (!pages.ok()) return pages.status();
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return Refused(errno, kAddSeals, bytes);
  return SealedMemory(++created, std::move(fd), *std::move(pages));
}

absl::StatusOr<SealedView> SealedView::Map(int fd, int64_t bytes) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) {
    return absl::InvalidArgumentError("seals: the descriptor is not a memory file");
  }
  if ((seals & kSeals) != kSeals) {
    return absl::InvalidArgumentError(absl::StrCat("seals are 0x", absl::Hex(seals),
                                                   ", want at least 0x", absl::Hex(kSeals),
                                                   " (SEAL, SHRINK, GROW and FUTURE_WRITE)"));
  }
  // Memory on huge pages is refused, even if it is sealed. When the memory is first touched, the
  // kernel may have no huge page left.
  struct statfs system = {};
  if (::fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC) {
    return absl::InvalidArgumentError(absl::StrCat(
        "file system is of type 0x", absl::Hex(system.f_type), ", want memory of ordinary pages"));
  }
  struct stat info = {};
  if (::fstat(fd, &info) != 0 || info.st_size != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("size is ", info.st_size, " bytes, want the announced ", bytes, " bytes"));
  }
  absl::StatusOr<MappedPages> pages = MapPages(fd, bytes, PROT_READ);
  if (!pages.ok()) return pages.status();
  return SealedView(*std::move(pages));
}

}  // namespace systole
