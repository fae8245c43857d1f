#include "core/memory/buffer_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Pages of smaller buffers are not returned to the kernel. A smaller buffer has no whole page, or
// too few whole pages to be worth a call.
constexpr int64_t kMinReturnedBytes = 16 << 10;

struct AddressRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

// The pages that lie wholly inside the buffer. Other pages may hold bytes of malloc.
AddressRange WholePagesOf(const AlignedBuffer& buffer) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto data = reinterpret_cast<uintptr_t>(buffer.data());
  return {.begin = (data + page - 1) / page * page,
          .end = (data + static_cast<uintptr_t>(buffer.size())) / page * page};
}

// Frees the buffer and returns its pages to the kernel at once. malloc alone would keep the pages
// of blocks below 128 KiB, as a hole in its heap that no larger buffer fits into.
void FreeWithPages(AlignedBuffer buffer) {
  if (buffer.sealed() != nullptr || buffer.size() < kMinReturnedBytes) return;
  const auto [begin, end] = WholePagesOf(buffer);
  // If the kernel refuses, malloc keeps the pages.
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

// A smaller buffer does not fill a huge page. Two buffers cannot share a huge page, because malloc
// keeps some bytes between them.
constexpr int64_t kMinHugeBytes = 2 << 20;
// If the budget has room for more buffers of one size than this, buffers of this size get no huge
// pages. madvise() may split the mapping of a buffer into three, and by default a process may have
// only 65,530 mappings.
constexpr int64_t kMostHugeBuffers = 4096;

// Asks the kernel for huge pages, because in the usual setting (`madvise`) the kernel gives them
// only on request. No memory is wasted, because feeds use all bytes of a buffer.
void AskForHugePages(const AlignedBuffer& buffer, int64_t budget_bytes) {
  if (buffer.size() < kMinHugeBytes || budget_bytes / buffer.size() > kMostHugeBuffers) return;
  const auto [begin, end] = WholePagesOf(buffer);
  // If the kernel refuses, or has no huge pages, the buffer has ordinary pages.
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace

absl::StatusOr<std::optional<AlignedBuffer>> BufferPool::TryAcquire(int64_t bytes,
                                                                    BufferKind kind) {
  const int64_t cost = CostOf(bytes);
  if (cost > budget_bytes()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a buffer of ", bytes, " bytes is larger than the whole memory budget of ", budget_bytes(),
        " bytes; raise --memory-budget, or make global_batch smaller"));
  }
  if (used_bytes_ + cost > budget_bytes()) return std::optional<AlignedBuffer>();
  std::optional<AlignedBuffer> buffer = TakeKept(bytes, kind);
  if (!buffer.has_value()) {
    while (!kept_.empty() && used_bytes_ + kept_bytes_ + cost > budget_bytes()) {
      Free(kept_.begin());
    }
    SYSTOLE_ASSIGN_OR_RETURN(buffer, Make(bytes, kind));
  }
  used_bytes_ += cost;
  return buffer;
}

std::optional<AlignedBuffer> BufferPool::TakeKept(int64_t bytes, BufferKind kind) {
  const auto same = by_size_.find({kind == BufferKind::kSealed, bytes});
  if (same == by_size_.end()) return std::nullopt;
  // Takes the buffer that came back last: more of it is still in the processor's cache.
  return Remove(same->second.back());
}

absl::StatusOr<AlignedBuffer> BufferPool::Make(int64_t bytes, BufferKind kind) {
  if (kind == BufferKind::kSealed) {
    if (MaySeal()) {
      absl::StatusOr<AlignedBuffer> sealed = AlignedBuffer::CreateSealed(bytes);
      if (sealed.ok()) {
        ++sealed_;
        return sealed;
      }
    }
    if (std::optional<AlignedBuffer> kept = TakeKept(bytes, BufferKind::kPrivate)) {
      return *std::move(kept);
    }
  }
  SYSTOLE_ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::Create(bytes, options_.alignment));
  AskForHugePages(buffer, budget_bytes());
  return buffer;
}

bool BufferPool::MaySeal() {
  if (sealed_ >= options_.max_sealed) {
    // Frees a kept sealed buffer of another size. Perhaps no feed needs that size any more.
    const auto sealed = by_size_.lower_bound({true, 0});
    if (sealed != by_size_.end()) Free(sealed->second.front());
  }
  return sealed_ < options_.max_sealed;
}

AlignedBuffer BufferPool::Remove(Kept::iterator kept) {
  const auto same = by_size_.find(KeyOf(*kept));
  // Callers pass only the oldest or the latest buffer of a size and kind.
  if (same->second.back() == kept) {
    same->second.pop_back();
  } else {
    SYSTOLE_CHECK(same->second.front() == kept);
    same->second.pop_front();
  }
  if (same->second.empty()) by_size_.erase(same);
  AlignedBuffer buffer = std::move(*kept);
  kept_.erase(kept);
  kept_bytes_ -= CostOf(buffer.size());
  return buffer;
}

void BufferPool::Free(Kept::iterator kept) {
  if (kept->sealed() != nullptr) --sealed_;
  FreeWithPages(Remove(kept));
}

void BufferPool::Release(AlignedBuffer buffer) {
  GiveAway(buffer.size());
  Keep(std::move(buffer));
}

void BufferPool::GiveAway(int64_t bytes) {
  const int64_t cost = CostOf(bytes);
  SYSTOLE_CHECK(used_bytes_ >= cost);
  used_bytes_ -= cost;
}

void BufferPool::TakeBack(AlignedBuffer buffer) {
  if (used_bytes_ + kept_bytes_ + CostOf(buffer.size()) <= budget_bytes()) {
    Keep(std::move(buffer));
  } else {
    if (buffer.sealed() != nullptr) --sealed_;
    FreeWithPages(std::move(buffer));
  }
}

void BufferPool::Keep(AlignedBuffer buffer) {
  kept_bytes_ += CostOf(buffer.size());
  kept_.push_back(std::move(buffer));
  const auto kept = std::prev(kept_.end());
  by_size_[KeyOf(*kept)].push_back(kept);
}

}  // namespace systole
