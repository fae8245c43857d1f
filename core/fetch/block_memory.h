// The buffers of blocks. A buffer that comes back is handed out again for another block of the same
// size. The pages of a fresh buffer would cost the kernel more time than all other work of a read.
//
// Sizes are rounded up. There are sixteen sizes between two powers of two, so that blocks of about
// the same size share buffers.
#ifndef SYSTOLE_CORE_FETCH_BLOCK_MEMORY_H_
#define SYSTOLE_CORE_FETCH_BLOCK_MEMORY_H_

#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/cache/disk_entry.h"
#include "core/concurrency/mutex.h"
#include "core/memory/aligned_buffer.h"
#include "core/memory/buffer_pool.h"

namespace systole {

// Where the bytes of a block begin in its buffer. A buffer starts on a page. Before the bytes there
// is room for a header, so the cache on disk can write the header and the bytes without a copy
// (DiskWrite::kDirect).
inline constexpr uint64_t kBlockBegin = kDiskEntryHeaderBytes;

// The size of the buffer for a block of `size` bytes. REQUIRES: size <= 2^40.
int64_t BufferBytesFor(uint64_t size);

class BlockMemory;

// A buffer that returns to its BlockMemory when it is destroyed. Thread-compatible. Can be moved,
// not copied.
class BlockBuffer {
 public:
  // `from` is null if the buffer belongs to no BlockMemory.
  explicit BlockBuffer(AlignedBuffer buffer = AlignedBuffer(), BlockMemory* from = nullptr)
      : buffer_(std::move(buffer)), from_(from) {}
  BlockBuffer(BlockBuffer&& other) noexcept
      : buffer_(std::move(other.buffer_)), from_(std::exchange(other.from_, nullptr)) {}
  BlockBuffer& operator=(BlockBuffer&&) = delete;
  ~BlockBuffer();

  uint8_t* data() { return buffer_.data(); }
  const uint8_t* data() const { return buffer_.data(); }

 private:
  AlignedBuffer buffer_;
  BlockMemory* from_;
};

// Thread-safe. Outlives its buffers.
class BlockMemory {
 public:
  // The buffers of the pool, in use and kept for reuse, take at most `bytes`. A buffer for which
  // Take() finds no room in the pool is freed when it comes back.
  explicit BlockMemory(int64_t bytes);

  // ResourceExhausted if the system does not have that much memory.
  absl::StatusOr<BlockBuffer> Take(int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend class BlockBuffer;
  void TakeBack(AlignedBuffer buffer) ABSL_LOCKS_EXCLUDED(mu_);

  Mutex mu_;
  BufferPool pool_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CORE_FETCH_BLOCK_MEMORY_H_
