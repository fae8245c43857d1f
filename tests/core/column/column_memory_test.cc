// Counts the bytes that are taken by operator new, because making columns may take no more than
// shard_columns.h says.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/column/column_file.h"
#include "core/column/shard_columns.h"
#include "core/example/example_builder.h"
#include "core/record/shard_formats.h"
#include "gtest/gtest.h"
#include "tests/core/column/boasting_source.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"

namespace {

std::atomic<int64_t> taken = 0;
std::atomic<int64_t> most = 0;

void* Take(size_t size) {
  void* const memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) std::abort();
  const int64_t now = taken += static_cast<int64_t>(malloc_usable_size(memory));
  int64_t before = most;
  while (before < now && !most.compare_exchange_weak(before, now)) {
  }
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

constexpr int64_t kRecords = 60'000;

TEST(ColumnMemoryTest, MakingAndKeepingColumnsTakesAboutTwelveBytesPerRecordAndColumn) {
  const TempFolder folder;
  const std::vector<std::string> features = {"label", "some", "width"};
  std::string bytes;
  for (int64_t i = 0; i < kRecords; ++i) {
    ExampleBuilder example;
    example.AddInt64s("label", {i}).AddFloats("width", {static_cast<float>(i)});
    if (i % 2 == 0) example.AddInt64s("some", {i});
    bytes += ShardBuilder().Add(example.Serialize()).Build();
  }
  const std::string path = folder.Write("a.tfrecord", bytes);
  bytes = {};
  const absl::StatusOr<std::unique_ptr<RecordSource>> shard = OpenShard(path, {});
  ASSERT_TRUE(shard.ok());
  most = taken.load();
  const int64_t before = most;
  {
    const absl::StatusOr<MadeColumns> made = MakeColumns(**shard, features, {});
    ASSERT_TRUE(made.ok());
    for (const Column& column : made->columns) {
      ASSERT_TRUE(KeepColumn(**shard, column, "", /*write_index=*/false).ok());
    }
  }
  constexpr int64_t kBeside = 1 << 20;
  const auto columns = static_cast<int64_t>(features.size());
  EXPECT_LE(most - before, 12 * kRecords * (columns + 1) + kBeside);
  EXPECT_GT(most - before, 12 * kRecords * columns);  // The counter works.
  // Columns that exist already are read one at a time.
  most = taken.load();
  const int64_t then = most;
  ASSERT_TRUE(MakeColumns(**shard, features, {}).ok());
  EXPECT_LE(most - then, 24 * kRecords + kBeside);
}

TEST(ColumnMemoryTest, AFalseFileSizeTakesMemoryOnlyForTheBytesThatCome) {
  const BoastingSource file = BoastingColumnFile();
  most = taken.load();
  const int64_t before = most;
  EXPECT_FALSE(ReadColumnFile(file, kBoastedContent, "").ok());
  EXPECT_LE(most - before, 1 << 20);
  EXPECT_GT(most - before, 200'000);  // The counter works.
}

}  // namespace
}  // namespace systole
