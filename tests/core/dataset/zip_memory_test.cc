// Counts the bytes that are taken by operator new. A peer can open any number of zips of the
// datasets that it may read. So a zip may take no memory for each shard or record.
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/dataset/shared_zip.h"
#include "core/example/example_builder.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"

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

constexpr int64_t kMostBytesOfAZip = 16'384;

std::shared_ptr<const Dataset> Shards(const std::string& name, int shards, int records) {
  std::vector<std::string> bytes;
  for (int i = 0; i < shards; ++i) {
    ShardBuilder shard;
    for (int j = 0; j < records; ++j) {
      shard.Add(ExampleBuilder().AddInt64s("label", {j}).AddInt64s("width", {i}).Serialize());
    }
    bytes.push_back(shard.Build());
  }
  return OpenTestDataset(bytes, name);
}

TEST(ZipMemoryTest, AZipTakesLessThan16KiBHoweverManyShardsAndZipsThereAre) {
  for (const int size : {1, 40, 1000}) {
    SCOPED_TRACE(size);
    // The shards of `a` have 3 records and those of `b` have 2, so they end at different records.
    const auto a = Shards("a", 2 * size, 3);
    const auto b = Shards("b", 3 * size, 2);
    std::vector<std::shared_ptr<const Dataset>> zips;
    for (int i = 0; i < 64; ++i) {
      std::vector<ZippedMember> members = {{a, absl::StrCat("a", i, "/")},
                                           {b, absl::StrCat("b", i, "/")}};
      if (i % 2 == 1) std::swap(members[0], members[1]);
      if (i % 4 == 2) members.push_back({a, "again/"});
      const int64_t before = taken;
      auto zip = SharedZip(std::move(members));
      ASSERT_TRUE(zip.ok());
      zips.push_back(*std::move(zip));
      EXPECT_EQ(zips.back()->num_records(), 6 * size);
      EXPECT_LT(taken - before, kMostBytesOfAZip);
    }
  }
}

}  // namespace
}  // namespace systole
