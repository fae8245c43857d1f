#include "core/process/allocator.h"

#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/sanitizers.h"

namespace systole {
namespace {

// Counts the arenas of the C library's malloc. A sanitizer replaces malloc, so only the first arena
// exists then.
int CountArenas() {
  char* text = nullptr;
  size_t size = 0;
  FILE* const out = open_memstream(&text, &size);
  malloc_info(0, out);
  std::fclose(out);
  int arenas = 0;
  const std::string info(text, size);
  std::free(text);
  for (size_t at = 0; (at = info.find("<heap nr=", at)) != std::string::npos; ++at) ++arenas;
  return arenas;
}

// All threads allocate at once, so that none takes over the arena of a thread that has ended.
TEST(AllocatorTest, ManyThreadsShareTheGivenNumberOfArenas) {
  constexpr int kArenas = 3;
  constexpr int kThreads = 8;
  KeepFreedMemory(kArenas);
  std::latch allocated(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&allocated] {
      void* volatile memory = std::malloc(5000);
      allocated.arrive_and_wait();
      std::free(memory);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(CountArenas(), kSanitized ? 1 : kArenas);
}

// By default malloc gives the memory back to the kernel at once.
TEST(AllocatorTest, FreedMemoryStaysWithTheProcess) {
  KeepFreedMemory(1);
  std::vector<void*> pieces;
  for (int i = 0; i < 1000; ++i) pieces.push_back(std::malloc(64 << 10));
  const size_t taken = mallinfo2().arena;
  for (void* const piece : pieces) std::free(piece);
  EXPECT_EQ(mallinfo2().arena, taken);
  if (!kSanitized) {
    EXPECT_GE(taken, size_t{1000} * (64 << 10));
  }
}

}  // namespace
}  // namespace systole
