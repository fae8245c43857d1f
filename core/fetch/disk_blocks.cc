#include "core/fetch/disk_blocks.h"

#include <algorithm>
#include <string>

#include "core/cache/kept_set.h"
#include "core/checksum/xxh3.h"

namespace systole {
namespace {

// The number by which the store knows a feed as a user of blocks. Never kNobody, which means no
// user.
uint64_t UserOf(uint64_t feed) { return std::max(feed, KeptSet::kNobody + 1); }

}  // namespace

std::optional<CacheKey> DiskKeyOf(const BlockRange& range) {
  const std::string identity = range.source->identity();
  if (identity.empty()) return std::nullopt;
  Xxh3Hasher hasher;
  for (const absl::string_view text : {range.source->name(), absl::string_view(identity)}) {
    hasher.UpdateU64(text.size());
    hasher.Update(text);
  }
  hasher.UpdateU64(range.offset);
  hasher.UpdateU64(range.size);
  const auto [high, low] = hasher.Digest128();
  return CacheKey{.high = high, .low = low};
}

bool DiskBlocks::Find(const BlockRange& range, uint64_t feed, absl::Span<char> out) const {
  if (store_ == nullptr) return false;
  const std::optional<CacheKey> key = DiskKeyOf(range);
  return key.has_value() && store_->FindInto(*key, UserOf(feed), out);
}

bool DiskBlocks::Admits(const BlockRange& range) const {
  return store_ != nullptr && store_->Admits(static_cast<int64_t>(range.size)) &&
         !range.source->identity().empty();
}

void DiskBlocks::Insert(const BlockRange& range, uint64_t feed, absl::string_view bytes) const {
  const std::optional<CacheKey> key = DiskKeyOf(range);
  if (store_ == nullptr || !key.has_value()) return;
  store_->Insert(*key, UserOf(feed), bytes, DiskWrite::kDirect);
}

}  // namespace systole
