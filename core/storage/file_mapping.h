// A file's bytes where the page cache has them, read without a system call or a copy; and what
// keeps a file that is cut, or whose storage fails, from ending the process while they are read.
//
// Touching a page that the file no longer has raises SIGBUS. The first mapping installs a handler
// for it, once in the process. On a fault inside a mapping that the faulting thread reads just now
// (see MappedRead), the handler puts zeros in place of the whole mapping, marks it failed, and the
// thread goes on; the zeros must not be believed, so the mark is looked at after use. A failed
// mapping stays so: whoever reads the source then uses ReadAt(), which says what is wrong.
//   Any other SIGBUS goes to the handler that was there before, or has its default action. A
//   program that installs a handler later must do likewise: pass on what is not its own to the one
//   it replaces. A forked child has handler and mappings as its parent has.
//
// Mapped bytes are the file's of this moment: who writes to the file changes them, even between two
// looks at the same byte. Code that reads them looks at each length once, checks what it saw, and
// afterwards asks ByteSource::CheckUnchanged(). Code that cannot (JPEG decoding) gets a copy.
//
// Mapped pages are the page cache's and count as such, in the resident size of the process too,
// until the kernel takes them back; beside them a mapping costs page tables, 2 MiB for each GiB
// that was touched.
#ifndef SYSTOLE_CORE_STORAGE_FILE_MAPPING_H_
#define SYSTOLE_CORE_STORAGE_FILE_MAPPING_H_

#include <atomic>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace systole {

// Thread-safe. Borrows the descriptor until the first use.
class FileMapping {
 public:
  // Of the first `bytes` bytes of `fd`. Maps nothing yet: thousands of shards are opened at a
  // start of which few are read at once.
  FileMapping(int fd, uint64_t bytes) : fd_(fd), bytes_(bytes) {}
  ~FileMapping();
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  // Has the processor load these bytes into its cache meanwhile, where they are mapped already and
  // in memory. Only a hint: reads nothing, may wait for page tables, and may be given any range.
  void Prefetch(uint64_t offset, uint64_t bytes) const;

 private:
  friend class MappedRead;

  // Where the bytes lie, mapped at the first call; null if this file cannot be mapped.
  char* Data();
  // The handler's part: true if `address` lies in the mapping and zeros stand there now.
  bool ReplaceByZeros(uintptr_t address);

  const int fd_;
  const uint64_t bytes_;
  std::atomic<char*> data_ = nullptr;  // MAP_FAILED if it cannot be mapped.
  std::atomic<bool> failed_ = false;
};

// The calling thread's permission to read a mapping, for as long as this lives. Costs nothing
// but the first time.
//
// Single-thread, and destroyed in the reverse order of construction: on the stack.
class MappedRead {
 public:
  // Null, a mapping that failed, or a file that cannot be mapped: there are no bytes to read.
  explicit MappedRead(FileMapping* mapping);
  ~MappedRead();
  MappedRead(const MappedRead&) = delete;
  MappedRead& operator=(const MappedRead&) = delete;

  // All of the file as it was sized when it was opened; empty if it cannot be read here. Valid as
  // long as this.
  absl::string_view bytes() const { return bytes_; }

  // Whether what was read so far may have been zeros that stand for bytes that could not be had.
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
