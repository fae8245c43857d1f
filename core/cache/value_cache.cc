#include "core/cache/value_cache.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Bookkeeping of a value in memory: two table entries, a list entry and the shared string.
constexpr int64_t kValueOverheadBytes = 400;

int64_t MemoryCost(int64_t bytes) { return bytes + kValueOverheadBytes; }

}  // namespace

ValueCache::ValueCache(const ValueCacheOptions& options, std::unique_ptr<DiskStore> disk)
    : disk_(std::move(disk)), kept_(options.memory_bytes) {}

absl::StatusOr<std::unique_ptr<ValueCache>> ValueCache::Create(const ValueCacheOptions& options) {
  std::unique_ptr<DiskStore> disk;
  if (!options.disk_folder.empty()) {
    SYSTOLE_ASSIGN_OR_RETURN(disk, DiskStore::Open(options.disk_folder, options.disk_bytes));
  }
  return absl::WrapUnique(new ValueCache(options, std::move(disk)));
}

CachedValue ValueCache::FindInMemory(const CacheKey& key, uint64_t user) {
  MutexLock lock(mu_);
  if (!kept_.Find(key, user)) return nullptr;
  ++memory_hits_;
  return values_.at(key);
}

CachedValue ValueCache::Find(const CacheKey& key, CacheStore store, uint64_t user) {
  if (CachedValue value = FindInMemory(key, user); value != nullptr) return value;
  CachedValue value;
  if (store == CacheStore::kDisk && disk_ != nullptr) value = disk_->Find(key, user);
  if (value != nullptr) InsertIntoMemory(key, user, value);
  MutexLock lock(mu_);
  ++(value != nullptr ? disk_hits_ : misses_);
  return value;
}

bool ValueCache::Admits(int64_t bytes, CacheStore store) const {
  if (store == CacheStore::kDisk && disk_ != nullptr && disk_->Admits(bytes)) return true;
  MutexLock lock(mu_);
  return kept_.Admits(MemoryCost(bytes));
}

int64_t ValueCache::RoomFor(int64_t bytes, CacheStore store) const {
  const bool on_disk = store == CacheStore::kDisk && disk_ != nullptr;
  const int64_t disk = on_disk ? disk_->RoomFor(bytes) : 0;
  MutexLock lock(mu_);
  return std::max(disk, kept_.RoomFor(MemoryCost(bytes)));
}

void ValueCache::Insert(const CacheKey& key, CacheStore store, uint64_t user, std::string value) {
  if (store == CacheStore::kDisk && disk_ != nullptr) disk_->Insert(key, user, value);
  InsertIntoMemory(key, user, std::make_shared<const std::string>(std::move(value)));
}

void ValueCache::InsertIntoMemory(const CacheKey& key, uint64_t user, CachedValue value) {
  MutexLock lock(mu_);
  const int64_t cost = MemoryCost(static_cast<int64_t>(value->capacity()));
  const bool kept = kept_.Insert(key, user, cost,
                                 [this](const CacheKey& gone)
                                     ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { values_.erase(gone); });
  if (kept) values_.insert_or_assign(key, std::move(value));
}

ValueCacheStats ValueCache::stats() const {
  ValueCacheStats stats;
  if (disk_ != nullptr) {
    stats.disk_bytes = disk_->used_bytes();
    stats.disk_budget_bytes = disk_->budget_bytes();
    stats.damaged_entries = disk_->damaged_entries();
  }
  MutexLock lock(mu_);
  stats.memory_hits = memory_hits_;
  stats.disk_hits = disk_hits_;
  stats.misses = misses_;
  stats.memory_bytes = kept_.used();
  stats.memory_budget_bytes = kept_.budget();
  return stats;
}

}  // namespace systole
