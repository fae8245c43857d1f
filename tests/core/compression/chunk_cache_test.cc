#include "core/compression/chunk_cache.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "core/concurrency/worker_pool.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

// Fills chunk i with the i-th letter and counts the fills.
struct Source {
  ChunkCache& cache;
  uint64_t file = cache.NewFile();
  std::atomic<int> fills = 0;

  std::string Read(size_t chunk, uint64_t bytes) {
    std::string seen;
    const absl::Status status = cache.Read(
        {.file = file, .chunk = chunk}, bytes,
        [&](absl::Span<char> out) {
          ++fills;
          std::fill(out.begin(), out.end(), static_cast<char>('a' + chunk % 26));
          return absl::OkStatus();
        },
        [&](absl::string_view held) { seen = std::string(held); });
    EXPECT_THAT(status, IsOk());
    return seen;
  }
};

TEST(ChunkCacheTest, AChunkIsFilledOnceAndTheLeastRecentlyUsedChunkIsEvicted) {
  ChunkCache cache(20);
  Source source{cache};
  EXPECT_EQ(source.Read(0, 8), "aaaaaaaa");
  EXPECT_EQ(source.Read(1, 8), "bbbbbbbb");
  EXPECT_EQ(source.Read(0, 8), "aaaaaaaa");
  EXPECT_EQ(source.fills, 2);
  EXPECT_EQ(source.Read(2, 10), "cccccccccc");  // Chunk 1 was evicted.
  EXPECT_EQ(source.Read(0, 8), "aaaaaaaa");
  EXPECT_EQ(source.fills, 3);
  EXPECT_EQ(source.Read(1, 8), "bbbbbbbb");  // Chunk 2 was evicted.
  EXPECT_EQ(source.fills, 4);
}

TEST(ChunkCacheTest, FilesHaveSeparateChunksAndForgetDropsTheChunksOfOneFile) {
  ChunkCache cache(100);
  Source one{cache};
  Source two{cache};
  EXPECT_EQ(one.Read(0, 2), "aa");
  EXPECT_EQ(two.Read(0, 3), "aaa");
  cache.Forget(one.file);
  EXPECT_EQ(two.Read(0, 3), "aaa");
  EXPECT_EQ(two.fills, 1);
  EXPECT_EQ(one.Read(0, 2), "aa");
  EXPECT_EQ(one.fills, 2);
}

TEST(ChunkCacheTest, AChunkThatCannotBeMadeIsNotKept) {
  ChunkCache cache(8);
  Source source{cache};
  const auto never = [](absl::string_view) { FAIL(); };
  EXPECT_THAT(cache.Read(
                  {.file = source.file, .chunk = 0}, 4,
                  [](absl::Span<char>) { return absl::UnavailableError("no disk"); }, never),
              StatusIs(absl::StatusCode::kUnavailable, "no disk"));
  EXPECT_EQ(source.Read(0, 4), "aaaa");
  EXPECT_EQ(source.Read(1, 4), "bbbb");
}

TEST(ChunkCacheTest, ReadersOfLargeChunksAreNotStarvedByReadersOfSmallChunks) {
  constexpr uint64_t kLarge = 500;
  ChunkCache cache(2 * kLarge);
  const uint64_t file = cache.NewFile();
  const auto fill = [](absl::Span<char> out) {
    std::fill(out.begin(), out.end(), 'x');
    return absl::OkStatus();
  };
  const auto use = [](absl::string_view) {};
  WorkerPool pool(4);
  ParallelFor(pool, 4, [&](int64_t thread) {
    // Thread 0 reads two chunks in turns, each of half of the cache's size. The others read small
    // chunks. No thread may wait forever.
    for (size_t i = 0; i < 3'000; ++i) {
      const size_t chunk = thread == 0 ? 1'000 + i % 2 : i % 8;
      const uint64_t bytes = thread == 0 ? kLarge : 100;
      EXPECT_THAT(cache.Read({.file = file, .chunk = chunk}, bytes, fill, use), IsOk());
    }
  });
}

TEST(ChunkCacheTest, ThreadsThatNeedAChunkAtTheSameTimeShareOneFill) {
  constexpr int kThreads = 6;
  ChunkCache cache(100);
  const uint64_t file = cache.NewFile();
  WorkerPool pool(kThreads - 1);  // The calling thread reads, too.
  for (size_t chunk = 0; chunk < 200; ++chunk) {
    std::atomic<int> begun = 0;
    std::atomic<int> fills = 0;
    std::atomic<int> right = 0;
    ParallelFor(pool, kThreads, [&](int64_t) {
      ++begun;
      const auto fill = [&](absl::Span<char> out) {
        ++fills;
        // Meanwhile the other threads want the chunk.
        EXPECT_TRUE(WaitUntil([&] { return begun == kThreads; }));
        std::fill(out.begin(), out.end(), 'x');
        return absl::OkStatus();
      };
      EXPECT_THAT(cache.Read({.file = file, .chunk = chunk}, 4, fill,
                             [&](absl::string_view held) { right += held == "xxxx" ? 1 : 0; }),
                  IsOk());
    });
    EXPECT_EQ(fills, 1);
    EXPECT_EQ(right, kThreads);
  }
}

TEST(ChunkCacheTest, ConcurrentReadsGetTheRightBytesAndFillNoMoreChunksThanFit) {
  constexpr int64_t kReads = 2'000;
  constexpr uint64_t kChunkBytes = 1'000;
  // Fewer chunks fit than there are threads, so that some wait for room.
  ChunkCache cache(3 * kChunkBytes);
  const uint64_t file = cache.NewFile();
  std::atomic<int> in_the_making = 0;
  std::atomic<int64_t> wrong = 0;
  WorkerPool pool(6);
  ParallelFor(pool, kReads, [&](int64_t i) {
    const size_t chunk = i * 7 % 11;
    const auto fill = [&](absl::Span<char> out) {
      if (++in_the_making > 3) ++wrong;
      std::fill(out.begin(), out.end(), static_cast<char>('a' + chunk));
      --in_the_making;
      return absl::OkStatus();
    };
    const auto use = [&](absl::string_view held) {
      if (held != std::string(kChunkBytes, static_cast<char>('a' + chunk))) ++wrong;
    };
    if (!cache.Read({.file = file, .chunk = chunk}, kChunkBytes, fill, use).ok()) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace systole
