// A block of memory that starts on a 64-byte boundary (a cache line, and the widest vector
// register) or on a boundary of a larger power of two. The block is private to this process, or
// other processes can map it as well.
//
// Thread-compatible. Owns its memory; moves, does not copy.
#ifndef SYSTOLE_CORE_MEMORY_ALIGNED_BUFFER_H_
#define SYSTOLE_CORE_MEMORY_ALIGNED_BUFFER_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/memory/sealed_memory.h"

namespace systole {

inline constexpr int64_t kBufferAlignment = 64;

// `bytes` rounded up to the next multiple of kBufferAlignment. REQUIRES: bytes >= 0.
constexpr int64_t AlignUp(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

class AlignedBuffer {
 public:
  // An empty buffer.
  AlignedBuffer() = default;

  // `bytes` of uninitialised memory. REQUIRES: `alignment` is a power of two, and at least
  // kBufferAlignment.
  //   InvalidArgument    bytes < 0.
  //   ResourceExhausted  the system does not have that much memory.
  static absl::StatusOr<AlignedBuffer> Create(int64_t bytes, int64_t alignment = kBufferAlignment);
  // The buffer is in SealedMemory, which other processes can map. Errors of SealedMemory::Create().
  static absl::StatusOr<AlignedBuffer> CreateSealed(int64_t bytes);

  uint8_t* data() { return data_.get(); }
  const uint8_t* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  absl::Span<uint8_t> span() { return absl::MakeSpan(data_.get(), static_cast<size_t>(size_)); }
  absl::Span<const uint8_t> span() const {
    return absl::MakeConstSpan(data_.get(), static_cast<size_t>(size_));
  }

  // The memory, for a peer to map; null unless the buffer was made by CreateSealed(). It is a
  // shared_ptr, so that a weak_ptr to it tells when the memory is freed.
  const std::shared_ptr<const SealedMemory>& sealed() const { return data_.get_deleter().sealed; }

 private:
  struct FreeDeleter {
    void operator()(uint8_t* p) const {
      if (sealed == nullptr) std::free(p);
    }
    std::shared_ptr<const SealedMemory> sealed;  // Owns the memory if set.
  };
  AlignedBuffer(uint8_t* data, int64_t size, std::shared_ptr<const SealedMemory> sealed)
      : data_(data, FreeDeleter{std::move(sealed)}), size_(size) {}

  std::unique_ptr<uint8_t[], FreeDeleter> data_;
  int64_t size_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_MEMORY_ALIGNED_BUFFER_H_
