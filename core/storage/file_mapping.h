// Reads a file's bytes in the page cache itself, without a system call or a copy. If the file is
// cut meanwhile, or its storage fails, the process goes on.
//
// Touching a page that the file no longer has raises SIGBUS. The first mapping installs a handler
// for it, once in the process. On a fault inside a mapping that the faulting thread is reading (see
// MappedRead), the handler puts zeros in place of the whole mapping and marks it failed, and the
// thread goes on. The reader must not believe the zeros, so it looks at the mark after use. A
// failed mapping stays failed. The source is then read by ReadAt(), which says what is wrong.
//   Any other SIGBUS goes to the handler that was there before, or has its default action. A
//   program that installs a handler later must do the same: pass on faults that are not its own to
//   the handler that it replaces. A forked child inherits the handler and the mappings.
//
// Mapped bytes are the file's bytes of this moment: a writer changes them, even between two looks
// at the same byte. Code that reads them looks at each length once, checks what it saw, and
// afterwards calls ByteSource::CheckUnchanged(). Code that cannot (JPEG decoding) gets a copy.
//
// Mapped pages belong to the page cache. They also count in the resident size of the process, until
// the kernel takes them back. Beside them a mapping costs page tables: 2 MiB for each GiB that was
// touched.
#ifndef SYSTOLE_CORE_STORAGE_FILE_MAPPING_H_
#define SYSTOLE_CORE_STORAGE_FILE_MAPPING_H_

#include <atomic>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace systole {

// Thread-safe. Borrows the descriptor until the first use.
class FileMapping {
 public:
  // For the first `bytes` bytes of `fd`. Maps nothing yet: a start opens thousands of shards, of
  // which few are read at once.
  FileMapping(int fd, uint64_t bytes) : fd_(fd), bytes_(bytes) {}
  ~FileMapping();
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  // Hint: lets the processor load these bytes into its cache, where they are mapped already and in
  // memory. Reads nothing, but may wait for page tables. Any range is allowed.
  void Prefetch(uint64_t offset, uint64_t bytes) const;

 private:
  friend class MappedRead;

  // Where the bytes lie, mapped at the first call; null if this file cannot be mapped.
  char* Data();
  // For the handler. True if `address` lies in the mapping; zeros stand there now.
  bool ReplaceByZeros(uintptr_t address);

  const int fd_;
  const uint64_t bytes_;
  std::atomic<char*> data_ = nullptr;  // MAP_FAILED if it cannot be mapped.
  std::atomic<bool> failed_ = false;
};

// Lets the calling thread read a mapping for as long as this object lives. Costs nothing but the
// first time.
//
// Single-thread. Must be destroyed in the reverse order of construction: put it on the stack.
class MappedRead {
 public:
  // There are no bytes to read if `mapping` is null, has failed, or cannot map its file.
  explicit MappedRead(FileMapping* mapping);
  ~MappedRead();
  MappedRead(const MappedRead&) = delete;
  MappedRead& operator=(const MappedRead&) = delete;

  // The whole file, of the size it had when it was opened; empty if it cannot be read here. Valid
  // as long as this object.
  absl::string_view bytes() const { return bytes_; }

  // Whether bytes read so far may have been zeros, in place of bytes that could not be read.
  bool failed() const;

 private:
  friend class FileMapping;

  // Called once. False if the system refuses.
  static bool InstallHandler();

  FileMapping* const mapping_;
  absl::string_view bytes_;
  const MappedRead* const outer_;  // The thread's next older one.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_FILE_MAPPING_H_
