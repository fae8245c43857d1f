// Counts the bytes that operator new takes for a list. record_list.h says how many bytes a list may
// take.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#include "core/order/record_list.h"
#include "gtest/gtest.h"

namespace {

int64_t taken = 0;  // All bytes that were ever taken; freeing subtracts nothing.

void* Take(size_t size) {
  taken += static_cast<int64_t>(size);
  void* const memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return Take(size); }
// These two operators are not inlined. If they were inlined, g++ would see free() beside a new
// expression and warn of a mismatch.
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace systole {
namespace {

TEST(RecordListMemoryTest, TheLookUpTablesTakeOneQuarterToThreeEighthsOfTheBitmap) {
  // A block is 8 words. The first list has one block more than a power of two. With this size, a
  // vector that doubles its capacity has the most unused bytes.
  for (const size_t num_words : {8 * 65'536 + 8, 8 * 70'000, 8 * 65'536}) {
    for (const uint64_t word : {uint64_t{0}, uint64_t{0x0101010101010101}, ~uint64_t{0}}) {
      std::vector<uint64_t> words(num_words, word);
      const int64_t before = taken;
      const RecordList list(std::move(words), static_cast<int64_t>(num_words) * 64);
      const auto bits = static_cast<int64_t>(num_words * sizeof(uint64_t));
      EXPECT_LE(taken - before, bits * 3 / 8 + 4096) << num_words;  // 4096: the hash's state.
      EXPECT_GE(taken - before, bits / 4) << num_words;
    }
  }
}

}  // namespace
}  // namespace systole
