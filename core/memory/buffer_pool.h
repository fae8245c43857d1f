// Aligned buffers under a byte budget. Buffers that come back are kept and handed out again for the
// same size, because a fresh 40 MB buffer costs ten thousand page faults.
//
// The pool never waits. If the budget is used up, TryAcquire() says so, and the caller decides
// which stream goes next. A call costs O(log of the buffers kept), plus the cost of freeing
// buffers. The pages of freed buffers go back to the kernel. For buffers below 16 KiB, malloc
// decides whether the pages go back. Thread-compatible.
#ifndef SYSTOLE_CORE_MEMORY_BUFFER_POOL_H_
#define SYSTOLE_CORE_MEMORY_BUFFER_POOL_H_

#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "core/memory/aligned_buffer.h"

namespace systole {

enum class BufferKind {
  // Memory for this process alone.
  kPrivate,
  // Other processes can map it (core/memory/sealed_memory.h), if the system has such memory left
  // and the pool may make one more sealed buffer. Otherwise the buffer is private.
  kSealed,
};

struct BufferPoolOptions {
  // Bound on the bytes of all buffers that are handed out or kept for reuse.
  int64_t budget_bytes = 0;
  // The most buffers that may be sealed. Each of them takes a file descriptor.
  int max_sealed = std::numeric_limits<int>::max();
  // Bytes that are charged for each buffer besides its size, because the buffer's owner needs other
  // memory, too. Without this charge, many tiny buffers would take far more memory than the budget.
  int64_t overhead_bytes = 0;
  // Private buffers start on a multiple of this number: see AlignedBuffer::Create().
  int64_t alignment = kBufferAlignment;
};

class BufferPool {
 public:
  explicit BufferPool(const BufferPoolOptions& options) : options_(options) {}

  // A buffer of exactly `bytes` with unspecified contents, or nullopt while the budget is used up.
  //   ResourceExhausted  `bytes` is more than the whole budget, or the system refused the memory.
  absl::StatusOr<std::optional<AlignedBuffer>> TryAcquire(int64_t bytes,
                                                          BufferKind kind = BufferKind::kPrivate);

  // Takes back a buffer that TryAcquire() gave.
  void Release(AlignedBuffer buffer);

  // Stops counting a buffer of `bytes` from TryAcquire(). The buffer belongs to the caller from now
  // on.
  void GiveAway(int64_t bytes);
  // Takes back a buffer that was given away. Keeps it for reuse if the budget has room, and
  // otherwise frees it.
  void TakeBack(AlignedBuffer buffer);

  int64_t budget_bytes() const { return options_.budget_bytes; }
  // Bytes handed out and not yet given back, each buffer with its overhead.
  int64_t used_bytes() const { return used_bytes_; }

 private:
  // Oldest first: the oldest is freed first when room is short.
  using Kept = std::list<AlignedBuffer>;
  // Whether a buffer is sealed, and its bytes.
  using KindAndBytes = std::pair<bool, int64_t>;

  static KindAndBytes KeyOf(const AlignedBuffer& buffer) {
    return {buffer.sealed() != nullptr, buffer.size()};
  }
  int64_t CostOf(int64_t bytes) const { return bytes + options_.overhead_bytes; }
  // A kept buffer of this size and kind, if there is one.
  std::optional<AlignedBuffer> TakeKept(int64_t bytes, BufferKind kind);
  absl::StatusOr<AlignedBuffer> Make(int64_t bytes, BufferKind kind);
  // Whether one more sealed buffer may be made. At the limit, first frees a kept sealed buffer if
  // there is one.
  bool MaySeal();
  // Puts a buffer into the lists.
  void Keep(AlignedBuffer buffer);
  // Takes a kept buffer out of the lists.
  AlignedBuffer Remove(Kept::iterator kept);
  // Frees a kept buffer.
  void Free(Kept::iterator kept);

  const BufferPoolOptions options_;
  int sealed_ = 0;  // How many sealed buffers are handed out or kept.
  int64_t used_bytes_ = 0;
  int64_t kept_bytes_ = 0;
  Kept kept_;
  // Where in kept_ the buffers of a kind and size are, oldest first. No list is empty.
  std::map<KindAndBytes, std::list<Kept::iterator>> by_size_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_MEMORY_BUFFER_POOL_H_
