// Values by key, kept in memory and on disk. Memory and disk have a limit each. kept_set.h says
// which values stay.
//
// Thread-safe. A value that was handed out stays valid after it is evicted.
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

// The cache and its readers share a value.
using CachedValue = std::shared_ptr<const std::string>;

struct ValueCacheOptions {
  // The most bytes that the values in memory may take, including 400 bytes of bookkeeping for each
  // value. 0: no values in memory.
  int64_t memory_bytes = 0;
  // Folder for values on disk, made if it is missing. No other cache may use it. Empty: no values
  // on disk.
  std::string disk_folder = "";
  // The most bytes that the files in `disk_folder` may take, each rounded up to 4 KiB. Each file
  // also takes 560 bytes of memory.
  int64_t disk_bytes = 0;
};

struct ValueCacheStats {
  // Look-ups that found a value in memory, on disk, or not at all.
  int64_t memory_hits = 0;
  int64_t disk_hits = 0;
  int64_t misses = 0;
  int64_t memory_bytes = 0;
  int64_t memory_budget_bytes = 0;
  int64_t disk_bytes = 0;
  int64_t disk_budget_bytes = 0;
  // Files that were removed because they did not hold the whole value of their key.
  int64_t damaged_entries = 0;
};

class ValueCache {
 public:
  // Returns the errors of DiskStore::Open().
  static absl::StatusOr<std::unique_ptr<ValueCache>> Create(const ValueCacheOptions& options);

  // The value; null if it is not kept. `user` is the number of the feed that needs the value. Feeds
  // with different data or values have different numbers. No feed has the number KeptSet::kNobody.
  // For kDisk, Find() looks in memory first. A value that was read from disk is kept in memory too,
  // if there is room.
  CachedValue Find(const CacheKey& key, CacheStore store, uint64_t user);
  // Looks only in memory. Does not count the look-up if it finds nothing.
  CachedValue FindInMemory(const CacheKey& key, uint64_t user) ABSL_LOCKS_EXCLUDED(mu_);

  // Whether a value of this many bytes would be kept now, in memory or on disk. Call Admits()
  // before work that is useless if the value is not kept.
  bool Admits(int64_t bytes, CacheStore store) const;

  // How many values of this many bytes an empty cache would keep. The answer never changes, so a
  // feed's plan can use the answer before there are values.
  int64_t RoomFor(int64_t bytes, CacheStore store) const;

  // Keeps the value in memory, and for kDisk also on disk, where there is room. If the key has a
  // value already, that value stays. An error of writing to disk is not reported: the value is then
  // not kept on disk.
  void Insert(const CacheKey& key, CacheStore store, uint64_t user, std::string value);

  ValueCacheStats stats() const;

 private:
  ValueCache(const ValueCacheOptions& options, std::unique_ptr<DiskStore> disk);

  void InsertIntoMemory(const CacheKey& key, uint64_t user, CachedValue value)
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::unique_ptr<DiskStore> disk_;  // Null: no values on disk.
  mutable Mutex mu_;
  KeptSet kept_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<CacheKey, CachedValue, CacheKeyHash> values_ ABSL_GUARDED_BY(mu_);
  int64_t memory_hits_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t disk_hits_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t misses_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CACHE_VALUE_CACHE_H_
