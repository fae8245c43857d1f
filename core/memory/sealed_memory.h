// Memory that other processes can map but only its owner can change: a memory file (memfd) of a
// fixed size. The owner writes through a mapping that was made before the file was sealed.
//
//   owner   SealedMemory::Create(bytes) -> data() to write, fd() to pass on
//   other   SealedView::Map(fd, bytes)  -> data() to read
//
// The seals, which cannot be removed:
//   SHRINK        the file cannot be cut short, so no reader dies of SIGBUS
//   GROW          the file cannot grow, so the size that the readers were given stays right
//   FUTURE_WRITE  no write() and no new writable mapping: no reader can change what other readers
//                 see. (The kernel does not set the seal WRITE while a writable mapping exists.)
//   SEAL          no further seal can be set
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_MEMORY_SEALED_MEMORY_H_
#define SYSTOLE_CORE_MEMORY_SEALED_MEMORY_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "core/descriptor/owned_fd.h"

namespace systole {

// Mapped memory. The destructor unmaps it.
class MappedPages {
 public:
  MappedPages() = default;
  MappedPages(uint8_t* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  MappedPages(MappedPages&& other) noexcept;
  MappedPages& operator=(MappedPages&& other) noexcept;
  ~MappedPages();

  uint8_t* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  uint8_t* data_ = nullptr;
  int64_t bytes_ = 0;
};

class SealedMemory {
 public:
  // Memory of `bytes` bytes, all 0, that starts on a page boundary. All pages are allocated at
  // once. So a lack of memory is an error here, and not a SIGBUS later. Costs about 0.2 ms per MiB.
  //   InvalidArgument    bytes < 1.
  //   ResourceExhausted  no memory or no file descriptor left.
  //   Unimplemented      the system has no such memory (Linux before 5.1). The error comes only
  //                      after all pages were allocated. To find out cheaply, call Create(1).
  static absl::StatusOr<SealedMemory> Create(int64_t bytes);

  // Counts from 1. Different for every object in this process.
  uint64_t id() const { return id_; }
  uint8_t* data() const { return pages_.data(); }
  int64_t bytes() const { return pages_.bytes(); }
  int fd() const { return fd_.get(); }

 private:
  SealedMemory(uint64_t id, OwnedFd fd, MappedPages pages)
      : id_(id), fd_(std::move(fd)), pages_(std::move(pages)) {}

  uint64_t id_;
  OwnedFd fd_;
  MappedPages pages_;
};

// The SealedMemory of another process.
class SealedView {
 public:
  // Maps the memory that `fd` refers to; `fd` is not needed afterwards.
  //   InvalidArgument    `fd` is not a memory file, is not on ordinary pages, lacks one of the
  //                      seals, or does not have the size `bytes`. The message says which of these.
  //   ResourceExhausted  the memory cannot be mapped.
  static absl::StatusOr<SealedView> Map(int fd, int64_t bytes);

  const uint8_t* data() const { return pages_.data(); }
  int64_t bytes() const { return pages_.bytes(); }

 private:
  explicit SealedView(MappedPages pages) : pages_(std::move(pages)) {}

  MappedPages pages_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_MEMORY_SEALED_MEMORY_H_
