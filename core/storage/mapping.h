// Reads the bytes of a source in place, without a system call or a copy. An example is a file in
// the page cache. If the source is cut meanwhile, or its storage fails, the process does not end.
//
// If a thread touches a page that the file no longer has, or that cannot be read, SIGBUS is raised.
// The first mapping of the process installs a handler for SIGBUS. If the page belongs to a mapping
// that the thread is reading (see MappedRead), the handler replaces the whole mapping by zeros and
// marks it as failed. Then the thread goes on. Because the bytes may be zeros, a reader must look
// at the mark after it has used them. A failed mapping stays failed. Its source must then be read
// by ReadAt(), whose error says what is wrong.
//   Any other SIGBUS goes to the handler that was installed before. If there was none, SIGBUS has
//   its default action. If a program installs its own handler later, that handler must pass on each
//   fault that is not its own to the handler that it replaced. A forked child inherits the handler
//   and the mappings.
//
// Mapped bytes are the file's present bytes: a writer may change them, even between two looks at
// the same byte. So code that reads mapped bytes must read each length only once, and check the
// value that it has read. At the end it must call ByteSource::CheckUnchanged(). Code that cannot do
// so (JPEG decoding) gets a copy.
//
// Mapped pages belong to the page cache. They also count in the resident size of the process, until
// the kernel takes them back. A mapping also takes memory for page tables: 2 MiB for each GiB that
// was touched.
#ifndef SYSTOLE_CORE_STORAGE_MAPPING_H_
#define SYSTOLE_CORE_STORAGE_MAPPING_H_

#include <atomic>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace systole {

// Thread-safe. The store decides how the bytes are mapped.
class Mapping {
 public:
  virtual ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // A hint: the processor loads these bytes into its cache, if they are already mapped and in
  // memory. The hint reads nothing from storage, but may wait for page tables. Any range is
  // allowed.
  void Prefetch(uint64_t offset, uint64_t bytes) const;

 protected:
  // A mapping of `bytes` bytes. Maps nothing yet, because a server opens thousands of shards at its
  // start but reads few of them at a time.
  explicit Mapping(uint64_t bytes) : bytes_(bytes) {}

  // Maps the first `bytes` bytes for reading, and returns their address. The base class unmaps
  // them. Returns MAP_FAILED if the bytes cannot be mapped. Several threads may make this call at a
  // time before the first read. After one of the results has been stored, Map() is not called
  // again. REQUIRES: bytes > 0.
  virtual void* Map(uint64_t bytes) const = 0;

 private:
  friend class MappedRead;

  // The address of the bytes. The first call maps them. Null if they cannot be mapped.
  char* Data();
  // Called by the handler. If `address` is in the mapping, replaces the mapping by zeros and
  // returns true.
  bool ReplaceByZeros(uintptr_t address);

  const uint64_t bytes_;
  std::atomic<char*> data_ = nullptr;  // MAP_FAILED if the bytes cannot be mapped.
  std::atomic<bool> failed_ = false;
};

// Lets the calling thread read a mapping for as long as this object lives. Only the first read of a
// mapping makes a system call.
//
// Single-thread. Must be destroyed in the reverse order of construction: put it on the stack.
class MappedRead {
 public:
  // bytes() is empty if `mapping` is null, has failed, or cannot map its bytes.
  explicit MappedRead(Mapping* mapping);
  ~MappedRead();
  MappedRead(const MappedRead&) = delete;
  MappedRead& operator=(const MappedRead&) = delete;

  // All bytes that the source had when it was opened, or empty. Valid as long as this object.
  absl::string_view bytes() const { return bytes_; }

  // Whether bytes that were read so far may have been zeros instead of the source's bytes.
  bool failed() const;

 private:
  friend class Mapping;

  // Called once. False if the system refuses.
  static bool InstallHandler();

  Mapping* const mapping_;
  absl::string_view bytes_;
  const MappedRead* const outer_;  // The thread's MappedRead before this one; may be null.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_MAPPING_H_
