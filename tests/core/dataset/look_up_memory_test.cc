// Counts the bytes that are taken by operator new, because look-ups whose storage hangs may hold no
// more than look_up_memory.h says.
#include "core/dataset/look_up_memory.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/column/column_file.h"
#include "core/dataset/dataset_columns.h"
#include "core/example/tensorflow_example.h"
#include "core/record/source/deferred_shard.h"
#include "core/record/source/index_path.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_objects.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace {

std::atomic<int64_t> taken = 0;

void* Take(size_t size) {
  void* const memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) std::abort();
  taken += static_cast<int64_t>(malloc_usable_size(memory));
  return memory;
}

void Give(void* memory) {
  if (memory != nullptr) taken -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) { return Take(size); }
// These are not inlined. Otherwise g++ sees free() beside a new expression and warns of a mismatch.
__attribute__((noinline)) void operator delete(void* memory) noexcept { Give(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { Give(memory); }

namespace systole {
namespace {

// The most look-ups at once: FeedMakers makes at most two feeds that are not slow, and six that are
// slow, at the same time.
constexpr int kLookUps = 8;
constexpr int kShards = 16;

std::unique_ptr<const LookUpMemory::Share> ShareOf(LookUpMemory& memory) {
  return absl::WrapUnique(new LookUpMemory::Share(memory.Take()));
}

// The bytes that a look-up takes for the shards that it tests at the same time. Its share of the
// memory is `share` bytes.
int64_t BytesAtOnce(int64_t records, bool are_far, int64_t share) {
  return ShardsTestedAtOnce(records, are_far, share) * records * kTestedRecordBytes;
}

TEST(LookUpMemoryTest, AllLookUpsStayBelowTheMemoryLimitUnlessOneShardNeedsMore) {
  LookUpMemory memory;
  EXPECT_EQ(memory.Take().bytes(), kLookUpBytes);
  std::vector<std::unique_ptr<const LookUpMemory::Share>> shares;
  int64_t all = 0;
  for (int i = 0; i < kLookUps; ++i) {
    shares.push_back(ShareOf(memory));
    EXPECT_GE(shares.back()->bytes(), 8 << 20);
    all += shares.back()->bytes();
  }
  EXPECT_LT(all, LookUpMemory::kBytes);
  for (int64_t records = 1; records < int64_t{1} << 40; records += records / 7 + 1) {
    for (const bool are_far : {false, true}) {
      int64_t taken_by_all = 0;
      int64_t larger_shards = 0;  // Bytes of look-ups whose share is smaller than a shard.
      for (const auto& share : shares) {
        const int64_t bytes = BytesAtOnce(records, are_far, share->bytes());
        (bytes > share->bytes() ? larger_shards : taken_by_all) += bytes;
        if (bytes > share->bytes()) {
          EXPECT_EQ(bytes, records * kTestedRecordBytes);
        }
      }
      EXPECT_LT(taken_by_all, LookUpMemory::kBytes) << records;
      if (records <= 200'000) {
        EXPECT_EQ(larger_shards, 0) << records;
      }
    }
  }
  // However many shares are taken, together they are smaller than LookUpMemory::kBytes.
  for (int i = 0; i < 1000; ++i) {
    shares.push_back(ShareOf(memory));
    all += shares.back()->bytes();
  }
  EXPECT_LT(all, LookUpMemory::kBytes);
  shares.clear();
  EXPECT_EQ(memory.Take().bytes(), kLookUpBytes);
}

class HungLookUpsTest : public testing::Test {
 protected:
  // Sixteen far shards of `records` records each. They all have the same files of the columns `a`
  // and `b`, on a web server.
  std::vector<std::shared_ptr<const RecordSource>> Shards(int64_t records) {
    const std::string path = absl::StrCat("/d/", records);
    for (const char* const feature : {"a", "b"}) {
      Column column = {.feature = feature, .num_records = records, .facts = {.first_int64 = 0}};
      column.lengths.assign(static_cast<size_t>(records), 1);
      column.int64s.assign(static_cast<size_t>(records), 7);
      std::string text = ColumnFileText(/*content_hash=*/1, column);
      file_bytes_ = text.size();
      objects_.Put(ColumnPath(IndexPath(path, ""), feature), std::move(text));
    }
    std::vector<std::shared_ptr<const RecordSource>> shards;
    for (int i = 0; i < kShards; ++i) {
      shards.push_back(std::make_shared<DeferredShard>(
          std::make_unique<MemorySource>("", objects_.server().Url(path)),
          ShardFacts{.identity = "x", .records = records, .content_hash = 1}, TensorFlowExample(),
          nullptr));
    }
    return shards;
  }

  std::atomic<bool> released_ = false;
  std::atomic<int> hung_ = 0;  // Requests that hang.
  std::atomic<uint64_t> file_bytes_ = 0;
  StubObjects objects_;
};

// The request for the end of column `b` hangs. By then, each look-up has the bits of column `a` and
// nearly all of column `b`.
TEST_F(HungLookUpsTest, HoldAtMostTheirMemorySharesOrOneShardEach) {
  objects_.SetFault([this](const StubRequest& request) -> std::optional<StubAnswer> {
    const absl::string_view range = FindHeader(request.headers, "range");
    if (absl::StrContains(request.target, ".b-") &&
        absl::EndsWith(range, absl::StrCat("-", file_bytes_ - 1))) {
      ++hung_;
      EXPECT_TRUE(WaitUntil([this] { return released_.load(); }));
    }
    return std::nullopt;
  });
  const Condition condition = {.field = "where",
                               .all = true,
                               .parts = {{.field = "a", .feature = "a", .less = 8},
                                         {.field = "b", .feature = "b", .less = 8}}};
  for (const int64_t records : {95'000, 200'000, 400'000}) {
    const auto shards = Shards(records);
    const DatasetColumns columns("", false);
    released_ = false;
    hung_ = 0;
    LookUpMemory memory;
    std::vector<std::unique_ptr<const LookUpMemory::Share>> shares;
    int at_once = 0;
    int64_t bound = 0;
    const int64_t before = taken;
    std::vector<std::thread> look_ups;
    for (int i = 0; i < kLookUps; ++i) {
      const int64_t share = shares.emplace_back(ShareOf(memory))->bytes();
      at_once += ShardsTestedAtOnce(records, /*are_far=*/true, share);
      bound += std::max(share, records * kTestedRecordBytes);
      look_ups.emplace_back([&, share] {
        std::set<std::string> found;
        EXPECT_THAT(columns.RecordsThatMeet(shards, condition, share, found), IsOk());
        EXPECT_THAT(found, testing::ElementsAre("a", "b"));
      });
    }
    EXPECT_TRUE(WaitUntil([&] { return hung_ >= at_once; }));
    EXPECT_EQ(hung_, at_once) << records;
    const int64_t held = taken - before;
    EXPECT_LE(held, bound) << records;
    EXPECT_GT(held, 8 * records * at_once) << records;  // The counter works.
    if (records <= 200'000) {
      EXPECT_LE(held, LookUpMemory::kBytes);
    }
    released_ = true;
    for (std::thread& look_up : look_ups) look_up.join();
  }
}

}  // namespace
}  // namespace systole
