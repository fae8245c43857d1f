#include "client/step/step_shelf.h"

#include <cstdlib>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::HasSubstr;

// Memory that counts how often it is allocated and freed.
struct Counted {
  StepMemory Memory() {
    return {.allocate =
                [this](int64_t bytes) {
                  ++allocated;
                  return static_cast<uint8_t*>(std::aligned_alloc(64, static_cast<size_t>(bytes)));
                },
            .free =
                [this](uint8_t* memory, int64_t bytes) {
                  EXPECT_EQ(bytes, 128);
                  ++freed;
                  std::free(memory);
                }};
  }
  int allocated = 0;
  int freed = 0;
};

TEST(StepShelfTest, KeepsReturnedBuffersForReuseUpToItsBound) {
  Counted counted;
  const auto shelf = StepShelf::Create(128, /*keep=*/2, counted.Memory());
  {
    std::vector<StepBuffer> held;
    for (int i = 0; i < 3; ++i) held.push_back(*shelf->Acquire());
  }
  EXPECT_EQ(counted.allocated, 3);
  EXPECT_EQ(counted.freed, 1);
  {
    std::vector<StepBuffer> held;
    for (int i = 0; i < 3; ++i) held.push_back(*shelf->Acquire());
  }
  EXPECT_EQ(counted.allocated, 4);
}

TEST(StepShelfTest, ABufferOutlivesTheShelfsOwner) {
  Counted counted;
  auto shelf = StepShelf::Create(128, 2, counted.Memory());
  StepBuffer kept = *shelf->Acquire();
  { const StepBuffer back = *shelf->Acquire(); }
  shelf->StopKeeping();
  EXPECT_EQ(counted.freed, 1);
  shelf.reset();
  kept.get()[127] = 1;
  kept.reset();
  EXPECT_EQ(counted.freed, counted.allocated);
}

TEST(StepShelfTest, PlainMemoryIsAligned) {
  const auto shelf = StepShelf::Create(128, 2, {});
  const StepBuffer a = *shelf->Acquire();
  const StepBuffer b = *shelf->Acquire();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.get()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b.get()) % 64, 0u);
  EXPECT_NE(a, b);
}

TEST(StepShelfTest, NoMemoryIsResourceExhausted) {
  const auto shelf = StepShelf::Create(
      128, 2,
      {.allocate = [](int64_t) -> uint8_t* { return nullptr; }, .free = [](uint8_t*, int64_t) {}});
  EXPECT_THAT(shelf->Acquire(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("128 bytes")));
}

}  // namespace
}  // namespace systole
