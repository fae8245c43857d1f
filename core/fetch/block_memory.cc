#include "core/fetch/block_memory.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"

namespace systole {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 40;

}  // namespace

int64_t BufferBytesFor(uint64_t size) {
  SYSTOLE_CHECK(size <= kMostBytes);
  const uint64_t bytes = kBlockBegin + size;
  const uint64_t grain = std::max<uint64_t>(kFilePageBytes, std::bit_floor(bytes) / 16);
  return static_cast<int64_t>((bytes + grain - 1) / grain * grain);
}

BlockBuffer::~BlockBuffer() {
  if (from_ != nullptr) from_->TakeBack(std::move(buffer_));
}

BlockMemory::BlockMemory(int64_t bytes)
    : pool_({.budget_bytes = bytes, .alignment = int64_t{kFilePageBytes}}) {}

absl::StatusOr<BlockBuffer> BlockMemory::Take(int64_t bytes) {
  {
    MutexLock lock(mu_);
    if (bytes <= pool_.budget_bytes()) {
      SYSTOLE_ASSIGN_OR_RETURN(std::optional<AlignedBuffer> buffer, pool_.TryAcquire(bytes));
      if (buffer.has_value()) return BlockBuffer(*std::move(buffer), this);
    }
  }
  // The budget has no room now. The block is larger than the whole budget, or another thread is
  // about to free a buffer.
  SYSTOLE_ASSIGN_OR_RETURN(AlignedBuffer buffer,
                           AlignedBuffer::Create(bytes, int64_t{kFilePageBytes}));
  return BlockBuffer(std::move(buffer));
}

void BlockMemory::TakeBack(AlignedBuffer buffer) {
  MutexLock lock(mu_);
  pool_.Release(std::move(buffer));
}

}  // namespace systole
