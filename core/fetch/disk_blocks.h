// Blocks in a DiskStore. A block's key is made of the source's name and identity, and the range.
#ifndef SYSTOLE_CORE_FETCH_DISK_BLOCKS_H_
#define SYSTOLE_CORE_FETCH_DISK_BLOCKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/cache/cache_key.h"
#include "core/cache/disk_store.h"
#include "core/fetch/block.h"

namespace systole {

// The key of a block; nullopt if the block's source has no identity. A change of such a source's
// bytes would go unnoticed, so its blocks are never kept on disk.
std::optional<CacheKey> DiskKeyOf(const BlockRange& range);

// Thread-safe.
class DiskBlocks {
 public:
  // If `store` is null, keeps nothing.
  explicit DiskBlocks(std::shared_ptr<DiskStore> store) : store_(std::move(store)) {}

  // Fills `out` with the block, if it is kept. If it is not kept, `out` may have any bytes.
  bool Find(const BlockRange& range, uint64_t feed, absl::Span<char> out) const;
  // Whether Insert() may keep the block.
  bool Admits(const BlockRange& range) const;
  // Waits for the device. Fastest if `bytes` begins kBlockBegin bytes (block_memory.h) after the
  // start of a page, as in a Block.
  void Insert(const BlockRange& range, uint64_t feed, absl::string_view bytes) const;

 private:
  const std::shared_ptr<DiskStore> store_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_FETCH_DISK_BLOCKS_H_
