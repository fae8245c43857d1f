// Aligned buffers under a byte budget. Buffers that come back are kept and handed out again for the
// same size, because a fresh 40 MB buffer costs ten thousand page faults.
//
// Never waits: a full budget is an answer, and the caller's scheduler decides who goes next.
// Thread-compatible.
#ifndef SYSTOLE_CORE_MEMORY_BUFFER_POOL_H_
#define SYSTOLE_CORE_MEMORY_BUFFER_POOL_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>

#include "absl/status/statusor.h"
#include "core/memory/aligned_buffer.h"

namespace systole {

enum class BufferKind {
  // For this process alone.
  kPrivate,
  // Other processes can map it (core/memory/sealed_memory.h), if the system has such memory left
  // and the pool may make one more; otherwise private memory after all.
  kSealed,
};

class BufferPool {
 public:
  // `budget_bytes` bounds the buffers handed out plus those kept for reuse; `max_sealed` bounds how
  // many of them are sealed, because each of those is a file descriptor too.
  explicit BufferPool(int64_t budget_bytes, int max_sealed = std::numeric_limits<int>::max())
      : budget_bytes_(budget_bytes), max_sealed_(max_sealed) {}

  // A buffer of exactly `bytes` with unspecified contents, or nullopt while the budget is used up.
  //   ResourceExhausted  `bytes` is more than the whole budget, or the system refused the memory.
  absl::StatusOr<std::optional<AlignedBuffer>> TryAcquire(int64_t bytes,
                                                          BufferKind kind = BufferKind::kPrivate);

  // Takes back a buffer that TryAcquire() gave.
  void Release(AlignedBuffer buffer);

  int64_t budget_bytes() const { return budget_bytes_; }
  // Bytes handed out and not yet given back.
  int64_t used_bytes() const { return used_bytes_; }

 private:
  // A kept buffer of this size and kind, if there is one.
  std::optional<AlignedBuffer> TakeKept(int64_t bytes, BufferKind kind);
  absl::StatusOr<AlignedBuffer> Make(int64_t bytes, BufferKind kind);
  // Whether one more sealed buffer may be made; frees a kept one for that if need be.
  bool MaySeal();
  // Frees a kept buffer.
  void Free(std::deque<AlignedBuffer>::iterator kept);

  const int64_t budget_bytes_;
  const int max_sealed_;
  int sealed_ = 0;  // Handed out and kept.
  int64_t used_bytes_ = 0;
  int64_t kept_bytes_ = 0;
  std::deque<AlignedBuffer> kept_;  // Oldest first: that one is freed first when room is short.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_MEMORY_BUFFER_POOL_H_
