// Values by key, kept in memory and on disk, each within a bound (kept_set.h says which ones).
//
// Thread-safe. A value that was handed out stays valid after it gave way.
#ifndef SYSTOLE_CORE_CACHE_VALUE_CACHE_H_
#define SYSTOLE_CORE_CACHE_VALUE_CACHE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/cache/cache_key.h"
#include "core/cache/disk_store.h"
#include "core/cache/kept_set.h"
#include "core/concurrency/mutex.h"

namespace systole {

// Where a value is to be kept.
enum class CacheStore { kMemory, kDisk };

// Shared with whoever reads it.
using CachedValue = std::shared_ptr<const std::string>;

struct ValueCacheOptions {
  // Bound on values in memory, with all that is kept around them. 0: none is kept there.
  int64_t memory_bytes = 0;
  // Folder for values on disk, made if it is missing; it is one cache's alone. Empty: none are kept
  // there.
  std::string disk_folder = "";
  // Bound on the files in that folder, each rounded up to 4 KiB. 560 bytes of memory for each file
  // come on top.
  int64_t disk_bytes = 0;
};

struct ValueCacheStats {
  // Look-ups that found a value there, and those that found none.
  int64_t memory_hits = 0;
  int64_t disk_hits = 0;
  int64_t misses = 0;
  int64_t memory_bytes = 0;
  int64_t memory_budget_bytes = 0;
  int64_t disk_bytes = 0;
  int64_t disk_budget_bytes = 0;
  // Files that were no whole value of their key. They were removed.
  int64_t damaged_entries = 0;
};

class ValueCache {
 public:
  // The errors of DiskStore::Open().
  static absl::StatusOr<std::unique_ptr<ValueCache>> Create(const ValueCacheOptions& options);

  // Null: it is not kept. `user` is who asks: any number that tells feeds of other data or other
  // values apart, not KeptSet::kNobody. kDisk looks in memory as well, and what it reads from disk
  // it keeps in memory too, if that has room.
  CachedValue Find(const CacheKey& key, CacheStore store, uint64_t user);

  // Whether a value of so many bytes would be kept now. For callers to whom making one costs more
  // than doing without.
  bool Admits(int64_t bytes, CacheStore store) const;

  // Keeps the value if there is room; one that is kept already stays. Never fails: what cannot be
  // written is not kept.
  void Insert(const CacheKey& key, CacheStore store, uint64_t user, std::string value);

  ValueCacheStats stats() const;

 private:
  ValueCache(const ValueCacheOptions& options, std::unique_ptr<DiskStore> disk);

  CachedValue FindInMemory(const CacheKey& key, uint64_t user) ABSL_LOCKS_EXCLUDED(mu_);
  void InsertIntoMemory(const CacheKey& key, uint64_t user, CachedValue value)
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::unique_ptr<DiskStore> disk_;  // Null: none.
  mutable Mutex mu_;
  KeptSet kept_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<CacheKey, CachedValue, CacheKeyHash> values_ ABSL_GUARDED_BY(mu_);
  int64_t memory_hits_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t disk_hits_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t misses_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CACHE_VALUE_CACHE_H_
