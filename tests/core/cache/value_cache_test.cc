#include "core/cache/value_cache.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/concurrency/worker_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

CacheKey Key(uint64_t number) { return {.high = 1, .low = number}; }

std::unique_ptr<ValueCache> Make(const ValueCacheOptions& options) {
  absl::StatusOr<std::unique_ptr<ValueCache>> cache = ValueCache::Create(options);
  EXPECT_THAT(cache, IsOk());
  return *std::move(cache);
}

TEST(ValueCacheTest, AnInsertedValueIsFoundAndHitsAndMissesAreCounted) {
  const auto cache = Make({.memory_bytes = 100'000});
  EXPECT_EQ(cache->Find(Key(1), CacheStore::kMemory, 1), nullptr);
  cache->Insert(Key(1), CacheStore::kMemory, 1, "value");
  const CachedValue found = cache->Find(Key(1), CacheStore::kMemory, 1);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(*found, "value");
  EXPECT_EQ(cache->stats().memory_hits, 1);
  EXPECT_EQ(cache->stats().misses, 1);
  EXPECT_GT(cache->stats().memory_bytes, 5);
  EXPECT_EQ(cache->stats().memory_budget_bytes, 100'000);
}

TEST(ValueCacheTest, TheMemoryBudgetIncludesTheOverheadOfValues) {
  const auto cache = Make({.memory_bytes = 100'000});
  for (uint64_t i = 0; i < 10'000; ++i) {
    cache->Insert(Key(i), CacheStore::kMemory, 1, "tiny");
    EXPECT_LE(cache->stats().memory_bytes, 100'000);
  }
  EXPECT_FALSE(cache->Admits(1, CacheStore::kMemory));
  EXPECT_NE(cache->Find(Key(0), CacheStore::kMemory, 1), nullptr);
  EXPECT_EQ(cache->Find(Key(9'999), CacheStore::kMemory, 1), nullptr);
}

TEST(ValueCacheTest, SaysForHowManyValuesItHasRoomInMemoryOrOnDisk) {
  const TempFolder folder;
  const auto cache = Make(
      {.memory_bytes = 100'000, .disk_folder = folder / "kept", .disk_bytes = int64_t{1} << 20});
  const int64_t room = cache->RoomFor(600, CacheStore::kMemory);
  for (uint64_t i = 0; i < 1000; ++i) {
    cache->Insert(Key(i), CacheStore::kMemory, 1, std::string(600, 'x'));
  }
  int64_t found = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    found += cache->Find(Key(i), CacheStore::kMemory, 1) != nullptr ? 1 : 0;
  }
  EXPECT_EQ(found, room);
  EXPECT_EQ(cache->RoomFor(600, CacheStore::kMemory), room);
  EXPECT_EQ(cache->RoomFor(600, CacheStore::kDisk), 256);  // Each value takes a file of 4 KiB.
  EXPECT_EQ(cache->RoomFor(0, CacheStore::kDisk), 256);
  EXPECT_EQ(cache->RoomFor(20'000, CacheStore::kMemory), 0);
  EXPECT_EQ(cache->RoomFor(20'000, CacheStore::kDisk), 51);
  EXPECT_EQ(Make({})->RoomFor(1, CacheStore::kDisk), 0);
}

TEST(ValueCacheTest, WithoutABudgetNothingIsKept) {
  const auto cache = Make({});
  EXPECT_FALSE(cache->Admits(0, CacheStore::kMemory));
  EXPECT_FALSE(cache->Admits(0, CacheStore::kDisk));
  cache->Insert(Key(1), CacheStore::kDisk, 1, "value");
  EXPECT_EQ(cache->Find(Key(1), CacheStore::kDisk, 1), nullptr);
}

TEST(ValueCacheTest, WhatWasReadFromDiskIsFoundInMemoryNext) {
  const TempFolder folder;
  const ValueCacheOptions options = {
      .memory_bytes = 100'000, .disk_folder = folder / "kept", .disk_bytes = 1 << 20};
  Make(options)->Insert(Key(1), CacheStore::kDisk, 1, "value");
  const auto cache = Make(options);
  for (int i = 0; i < 3; ++i) {
    const CachedValue found = cache->Find(Key(1), CacheStore::kDisk, 1);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(*found, "value");
  }
  EXPECT_EQ(cache->stats().disk_hits, 1);
  EXPECT_EQ(cache->stats().memory_hits, 2);
}

TEST(ValueCacheTest, ConcurrentLookUpsReturnTheWholeValueOfTheirKey) {
  const TempFolder folder;
  const auto cache =
      Make({.memory_bytes = 60'000, .disk_folder = folder / "kept", .disk_bytes = 100 * 4096});
  {
    WorkerPool pool(4);
    for (int thread = 0; thread < 4; ++thread) {
      pool.Submit([&cache, thread] {
        for (uint64_t i = 0; i < 2000; ++i) {
          const uint64_t number = i * (static_cast<uint64_t>(thread) + 1) % 150;
          const CacheStore store = number % 2 == 0 ? CacheStore::kMemory : CacheStore::kDisk;
          const std::string wanted(number * 3, static_cast<char>(number));
          const CachedValue found = cache->Find(Key(number), store, 1 + i % 3);
          if (found != nullptr) {
            EXPECT_EQ(*found, wanted);
          } else if (cache->Admits(static_cast<int64_t>(wanted.size()), store)) {
            cache->Insert(Key(number), store, 1 + i % 3, wanted);
          }
        }
      });
    }
  }
  EXPECT_EQ(cache->stats().damaged_entries, 0);
  EXPECT_LE(cache->stats().memory_bytes, 60'000);
  EXPECT_LE(cache->stats().disk_bytes, 100 * 4096);
}

}  // namespace
}  // namespace systole
