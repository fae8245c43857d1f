// Aligned buffers under a byte budget. Buffers that come back are kept and handed out again for the
// same size, because a fresh 40 MB buffer costs ten thousand page faults.
//
// The pool never waits: TryAcquire() returns nullopt while the budget is used up. A call costs
// O(log n) for n kept buffers, plus the cost of freeing buffers. When the pool frees a buffer of 16
// KiB or more, its pages go back to the kernel. For smaller buffers malloc decides about the pages.
// Thread-compatible.
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
  // Memory that other processes can map (core/memory/sealed_memory.h). If the system has no such
  // memory left, or the pool may make no more sealed buffers, the buffer is private instead.
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

  // Stops counting a buffer of `bytes` that TryAcquire() gave. From now on, the buffer belongs to
  // the caller.
  void GiveAway(int64_t bytes);
  // Takes back a buffer that was given away. Keeps it for reuse if the budget has room, and
  // otherwise frees it.
  void TakeBack(AlignedBuffer buffer);

  int64_t budget_bytes() const { return options_.budget_bytes; }
  // The bytes of all buffers that are handed out and neither given back nor given away. Each buffer
  // counts with its overhead.
  int64_t used_bytes() const { return used_bytes_; }

 private:
  // The buffer that came back first is at the front. When room is short, it is freed first.
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
  // Puts a buffer into kept_ and by_size_.
  void Keep(AlignedBuffer buffer);
  // Takes a kept buffer out of kept_ and by_size_.
  AlignedBuffer Remove(Kept::iterator kept);
  // Frees a kept buffer.
  void Free(Kept::iterator kept);

  const BufferPoolOptions options_;
  int sealed_ = 0;  // How many sealed buffers are handed out or kept.
  int64_t used_bytes_ = 0;
  int64_t kept_bytes_ = 0;
  Kept kept_;
  // For each kind and size, the places of these buffers in kept_, oldest first. No list is empty.
  std::map<KindAndBytes, std::list<Kept::iterator>> by_size_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_MEMORY_BUFFER_POOL_H_
