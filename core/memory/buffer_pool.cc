#include "core/memory/buffer_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {

absl::StatusOr<std::optional<AlignedBuffer>> BufferPool::TryAcquire(int64_t bytes,
                                                                    BufferKind kind) {
  if (bytes > budget_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a buffer of ", bytes, " bytes is larger than the whole memory budget of ",
                     budget_bytes_, " bytes; raise the budget or make the batch smaller"));
  }
  if (used_bytes_ + bytes > budget_bytes_) return std::optional<AlignedBuffer>();
  std::optional<AlignedBuffer> buffer = TakeKept(bytes, kind);
  if (!buffer.has_value()) {
    while (!kept_.empty() && used_bytes_ + kept_bytes_ + bytes > budget_bytes_) {
      Free(kept_.begin());
    }
    SYSTOLE_ASSIGN_OR_RETURN(buffer, Make(bytes, kind));
  }
  used_bytes_ += bytes;
  return buffer;
}

std::optional<AlignedBuffer> BufferPool::TakeKept(int64_t bytes, BufferKind kind) {
  // The latest first: more of it is still in the cache.
  for (auto it = kept_.rbegin(); it != kept_.rend(); ++it) {
    if (it->size() != bytes || (it->sealed() != nullptr) != (kind == BufferKind::kSealed)) continue;
    AlignedBuffer buffer = std::move(*it);
    kept_.erase(std::next(it).base());
    kept_bytes_ -= bytes;
    return buffer;
  }
  return std::nullopt;
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
  return AlignedBuffer::Create(bytes);
}

bool BufferPool::MaySeal() {
  if (sealed_ >= max_sealed_) {
    // One of another size, which no feed may want any more.
    const auto sealed = std::find_if(kept_.begin(), kept_.end(), [](const AlignedBuffer& buffer) {
      return buffer.sealed() != nullptr;
    });
    if (sealed != kept_.end()) Free(sealed);
  }
  return sealed_ < max_sealed_;
}

void BufferPool::Free(std::deque<AlignedBuffer>::iterator kept) {
  if (kept->sealed() != nullptr) --sealed_;
  kept_bytes_ -= kept->size();
  kept_.erase(kept);
}

void BufferPool::Release(AlignedBuffer buffer) {
  SYSTOLE_CHECK(used_bytes_ >= buffer.size());
  used_bytes_ -= buffer.size();
  kept_bytes_ += buffer.size();
  kept_.push_back(std::move(buffer));
}

}  // namespace systole
