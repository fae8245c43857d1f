#include "core/process/memory_trim.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace systole {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kAllowed = 100 * kMiB;

TEST(MemoryTrimTest, NoTrimIsDueWithinTheAllowedMemory) {
  MemoryTrim trim;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(trim.IsDue(kAllowed, kAllowed));
}

TEST(MemoryTrimTest, ATrimIsDueAtEachCallAsLongAsTrimsFreeEnough) {
  MemoryTrim trim;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(trim.IsDue(kAllowed + 1, kAllowed));
    trim.Done(kAllowed + 1 - MemoryTrim::kGainBytes);
  }
}

// Each trim gives back one byte less than kGainBytes.
TEST(MemoryTrimTest, TheWaitDoublesUpToAMaximumIfTrimsFreeTooLittle) {
  MemoryTrim trim;
  int calls = 0;
  for (const int wait : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 640, 640}) {
    int waited = 1;
    while (!trim.IsDue(kAllowed + 50 * kMiB, kAllowed)) ++waited;
    EXPECT_EQ(waited, wait) << "after " << calls << " calls";
    calls += waited;
    trim.Done(kAllowed + 50 * kMiB - MemoryTrim::kGainBytes + 1);
  }
}

TEST(MemoryTrimTest, ATrimThatFreesMemoryEndsTheLongWait) {
  MemoryTrim trim;
  const auto wait_for_trim = [&trim] {
    int waited = 1;
    while (!trim.IsDue(3 * kAllowed, kAllowed)) ++waited;
    return waited;
  };
  for (int i = 0; i < 4; ++i) {
    wait_for_trim();
    trim.Done(3 * kAllowed);
  }
  EXPECT_EQ(wait_for_trim(), 16);
  trim.Done(2 * kAllowed);
  EXPECT_EQ(wait_for_trim(), 1);
}

TEST(MemoryTrimTest, TheWaitRestartsOnceMemoryIsWithinTheAllowedAmount) {
  MemoryTrim trim;
  for (int i = 0; i < 200; ++i) {
    if (trim.IsDue(3 * kAllowed, kAllowed)) trim.Done(3 * kAllowed);
  }
  EXPECT_FALSE(trim.IsDue(kAllowed, kAllowed));
  EXPECT_TRUE(trim.IsDue(kAllowed + 1, kAllowed));
  trim.Done(kAllowed + 1);
  EXPECT_FALSE(trim.IsDue(kAllowed + 1, kAllowed));
  EXPECT_TRUE(trim.IsDue(kAllowed + 1, kAllowed));
}

}  // namespace
}  // namespace systole
