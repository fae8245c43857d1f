// A block's range, with the number of its source instead of a pointer to the source. So the key
// stays valid after the source is destroyed.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CORE_FETCH_BLOCK_KEY_H_
#define SYSTOLE_CORE_FETCH_BLOCK_KEY_H_

#include <cstddef>
#include <cstdint>

#include "absl/hash/hash.h"
#include "core/fetch/block.h"

namespace systole {

struct BlockKey {
  uint64_t source = 0;
  uint64_t offset = 0;
  uint64_t size = 0;

  friend bool operator==(const BlockKey&, const BlockKey&) = default;
};

struct BlockKeyHash {
  size_t operator()(const BlockKey& key) const {
    return absl::HashOf(key.source, key.offset, key.size);
  }
};

// REQUIRES: the source exists.
inline BlockKey KeyOf(const BlockRange& range) {
  return {.source = range.source->number(), .offset = range.offset, .size = range.size};
}

}  // namespace systole

#endif  // SYSTOLE_CORE_FETCH_BLOCK_KEY_H_
