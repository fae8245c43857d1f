#include "client/step/step_shelf.h"

#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/memory/aligned_buffer.h"

namespace systole {
namespace {

// The distance from the beginning of the allocated memory to the buffer. Large blocks begin on a
// page, and so do servers' slots and, often, the cores' parts of a tensor. A copy between addresses
// with equal lower 12 bits takes a tenth longer (bench/peers, row "wire alone", by "unix:").
constexpr int64_t kPageOffset = 1024;
static_assert(kPageOffset % kBufferAlignment == 0);

uint8_t* Allocate(int64_t bytes) {
  // The size is a multiple of the alignment: slices are made of aligned tensors.
  void* const memory = std::aligned_alloc(static_cast<size_t>(kBufferAlignment),
                                          static_cast<size_t>(bytes + kPageOffset));
  return memory == nullptr ? nullptr : static_cast<uint8_t*>(memory) + kPageOffset;
}

}  // namespace

std::shared_ptr<StepShelf> StepShelf::Create(int64_t bytes, int64_t keep, StepMemory memory) {
  return std::shared_ptr<StepShelf>(new StepShelf(bytes, keep, std::move(memory)));
}

StepShelf::StepShelf(int64_t bytes, int64_t keep, StepMemory memory)
    : bytes_(bytes), memory_(std::move(memory)), keep_(keep) {}

StepShelf::~StepShelf() { StopKeeping(); }

absl::StatusOr<StepBuffer> StepShelf::Acquire() {
  uint8_t* buffer = nullptr;
  {
    MutexLock lock(mu_);
    if (!unused_.empty()) {
      buffer = unused_.back();
      unused_.pop_back();
    }
  }
  if (buffer == nullptr) {
    buffer = memory_.allocate ? memory_.allocate(bytes_) : Allocate(bytes_);
    if (buffer == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "no memory for a step of ", bytes_,
          " bytes; lower prefetch_bytes (--prefetch-bytes) or global_batch, or take fewer cores"));
    }
    if (reinterpret_cast<uintptr_t>(buffer) % kBufferAlignment != 0) {
      Free(buffer);
      return absl::InvalidArgumentError(
          absl::StrCat("StepMemory.allocate gave memory that does not start on a ",
                       kBufferAlignment, "-byte boundary"));
    }
  }
  return StepBuffer(buffer, [shelf = shared_from_this()](uint8_t* b) { shelf->Return(b); });
}

void StepShelf::StopKeeping() {
  std::vector<uint8_t*> unused;
  {
    MutexLock lock(mu_);
    keep_ = 0;
    unused.swap(unused_);
  }
  for (uint8_t* buffer : unused) Free(buffer);
}

void StepShelf::Return(uint8_t* buffer) {
  {
    MutexLock lock(mu_);
    if (static_cast<int64_t>(unused_.size()) < keep_) {
      unused_.push_back(buffer);
      return;
    }
  }
  Free(buffer);
}

void StepShelf::Free(uint8_t* buffer) const {
  if (memory_.allocate) {
    memory_.free(buffer, bytes_);
  } else {
    std::free(buffer - kPageOffset);
  }
}

}  // namespace systole
