// The key of a value in the cache: a hash of everything that decides the value.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CORE_CACHE_CACHE_KEY_H_
#define SYSTOLE_CORE_CACHE_CACHE_KEY_H_

#include <cstddef>
#include <cstdint>

namespace systole {

// With 128 bits, two values never share a key by accident.
struct CacheKey {
  uint64_t high = 0;
  uint64_t low = 0;

  friend bool operator==(const CacheKey&, const CacheKey&) = default;
};

// Returns a part of the key, which is a hash already.
struct CacheKeyHash {
  size_t operator()(const CacheKey& key) const { return static_cast<size_t>(key.low); }
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CACHE_CACHE_KEY_H_
