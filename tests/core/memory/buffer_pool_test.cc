#include "core/memory/buffer_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

AlignedBuffer MustAcquire(BufferPool& pool, int64_t bytes, BufferKind kind = BufferKind::kPrivate) {
  absl::StatusOr<std::optional<AlignedBuffer>> buffer = pool.TryAcquire(bytes, kind);
  EXPECT_THAT(buffer, IsOk());
  EXPECT_TRUE(buffer->has_value());
  return *std::move(*buffer);
}

TEST(AlignedBufferTest, StartsOnACacheLine) {
  for (const int64_t bytes : {0, 1, 63, 64, 65, 4097}) {
    absl::StatusOr<AlignedBuffer> buffer = AlignedBuffer::Create(bytes);
    ASSERT_THAT(buffer, IsOk());
    EXPECT_EQ(buffer->size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % kBufferAlignment, 0u);
  }
}

TEST(AlignedBufferTest, StartsOnAPageIfAsked) {
  for (const int64_t bytes : {0, 1, 4096, 4097}) {
    absl::StatusOr<AlignedBuffer> buffer = AlignedBuffer::Create(bytes, 4096);
    ASSERT_THAT(buffer, IsOk());
    EXPECT_EQ(buffer->size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 4096, 0u);
  }
}

TEST(AlignedBufferTest, NegativeSizeIsRefused) {
  EXPECT_THAT(AlignedBuffer::Create(-1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1 bytes")));
}

TEST(AlignedBufferTest, MoreThanTheMachineHasIsResourceExhausted) {
  if (kAddressSanitizer) return;  // Its allocator does not return null, but ends the program.
  EXPECT_THAT(AlignedBuffer::Create(int64_t{1} << 60),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("refused")));
}

// Whether huge pages were asked for at the middle of the buffer.
bool AsksForHugePages(const AlignedBuffer& buffer) {
  const auto middle = reinterpret_cast<uintptr_t>(buffer.data()) + buffer.size() / 2;
  std::ifstream mappings("/proc/self/smaps");
  bool is_in = false;
  for (std::string line; std::getline(mappings, line);) {
    unsigned long long begin = 0;
    unsigned long long end = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2) {
      is_in = begin <= middle && middle < end;
    } else if (is_in && absl::StartsWith(line, "VmFlags:")) {
      return absl::StrContains(line, " hg");
    }
  }
  return false;
}

TEST(BufferPoolTest, LargeBuffersAskForHugePagesUnlessTheBudgetIsHuge) {
  constexpr int64_t kLarge = int64_t{8} << 20;
  BufferPool pool({.budget_bytes = 2 * kLarge});
  // Kernels may be built without huge pages.
  const bool are_there = access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0;
  EXPECT_EQ(AsksForHugePages(MustAcquire(pool, kLarge)), are_there);
  EXPECT_FALSE(AsksForHugePages(MustAcquire(pool, kLarge / 8)));
  // A pool of this budget could have more mappings than a process may have.
  BufferPool large_pool({.budget_bytes = 100'000 * kLarge});
  EXPECT_FALSE(AsksForHugePages(MustAcquire(large_pool, kLarge)));
}

TEST(BufferPoolTest, FullBudgetAnswersNulloptUntilABufferComesBack) {
  BufferPool pool({.budget_bytes = 100});
  AlignedBuffer first = MustAcquire(pool, 60);
  EXPECT_THAT(pool.TryAcquire(60), IsOkAndHolds(testing::Eq(std::nullopt)));
  EXPECT_EQ(pool.used_bytes(), 60);
  pool.Release(std::move(first));
  EXPECT_EQ(pool.used_bytes(), 0);
  MustAcquire(pool, 60);
}

TEST(BufferPoolTest, ABufferThatCameBackIsHandedOutAgain) {
  BufferPool pool({.budget_bytes = 200});
  AlignedBuffer first = MustAcquire(pool, 60);
  const uint8_t* const place = first.data();
  pool.Release(std::move(first));
  EXPECT_EQ(MustAcquire(pool, 60).data(), place);
}

TEST(BufferPoolTest, KeptBuffersOfAnotherSizeMakeRoom) {
  BufferPool pool({.budget_bytes = 100});
  pool.Release(MustAcquire(pool, 90));
  EXPECT_EQ(MustAcquire(pool, 80).size(), 80);  // 90 kept bytes and 80 new ones exceed the budget.
}

TEST(BufferPoolTest, MoreThanTheWholeBudgetIsAnErrorNotAWait) {
  BufferPool pool({.budget_bytes = 100});
  EXPECT_THAT(pool.TryAcquire(101),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("budget of 100 bytes")));
}

TEST(BufferPoolTest, OverheadBytesOfEachBufferCountAgainstTheBudget) {
  BufferPool pool({.budget_bytes = 100, .overhead_bytes = 30});
  AlignedBuffer first = MustAcquire(pool, 10);
  MustAcquire(pool, 30);
  EXPECT_EQ(pool.used_bytes(), 100);
  EXPECT_THAT(pool.TryAcquire(1), IsOkAndHolds(testing::Eq(std::nullopt)));
  EXPECT_THAT(pool.TryAcquire(71),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("71 bytes")));
  pool.Release(std::move(first));
  EXPECT_EQ(pool.used_bytes(), 60);
  // The overhead of kept buffers counts too, so the kept buffer is freed.
  EXPECT_EQ(MustAcquire(pool, 5).size(), 5);
}

// The buffers are sealed, because a weak pointer shows when a sealed buffer is freed.
TEST(BufferPoolTest, TheOldestKeptBufferMakesRoomAndTheLatestIsReused) {
  BufferPool pool({.budget_bytes = 100'000});
  AlignedBuffer first = MustAcquire(pool, 20'000, BufferKind::kSealed);
  AlignedBuffer second = MustAcquire(pool, 20'000, BufferKind::kSealed);
  AlignedBuffer third = MustAcquire(pool, 20'000, BufferKind::kSealed);
  const std::weak_ptr<const SealedMemory> oldest = first.sealed();
  const std::weak_ptr<const SealedMemory> middle = second.sealed();
  const uint64_t latest = third.sealed()->id();
  pool.Release(std::move(first));
  pool.Release(std::move(second));
  pool.Release(std::move(third));
  MustAcquire(pool, 60'000);
  EXPECT_TRUE(oldest.expired());
  EXPECT_FALSE(middle.expired());
  EXPECT_EQ(MustAcquire(pool, 20'000, BufferKind::kSealed).sealed()->id(), latest);
}

TEST(BufferPoolTest, SealedBuffersComeUnderTheSameBudget) {
  BufferPool pool({.budget_bytes = 100'000});
  AlignedBuffer sealed = MustAcquire(pool, 60'000, BufferKind::kSealed);
  ASSERT_NE(sealed.sealed(), nullptr);
  EXPECT_EQ(sealed.sealed()->data(), sealed.data());
  EXPECT_EQ(sealed.sealed()->bytes(), 60'000);
  EXPECT_EQ(pool.used_bytes(), 60'000);
  EXPECT_THAT(pool.TryAcquire(60'000), IsOkAndHolds(testing::Eq(std::nullopt)));
  EXPECT_EQ(MustAcquire(pool, 10'000).sealed(), nullptr);
}

TEST(BufferPoolTest, AKeptBufferIsHandedOutForItsOwnKindOnly) {
  BufferPool pool({.budget_bytes = 200'000});
  AlignedBuffer first = MustAcquire(pool, 60'000, BufferKind::kSealed);
  const uint64_t id = first.sealed()->id();
  pool.Release(std::move(first));
  EXPECT_EQ(MustAcquire(pool, 60'000).sealed(), nullptr);
  EXPECT_EQ(MustAcquire(pool, 60'000, BufferKind::kSealed).sealed()->id(), id);
}

TEST(BufferPoolTest, ABufferGivenAwayCountsNoMoreAndMayComeBack) {
  BufferPool pool({.budget_bytes = 100});
  AlignedBuffer first = MustAcquire(pool, 100);
  const uint8_t* const memory = first.data();
  pool.GiveAway(first.size());
  EXPECT_EQ(pool.used_bytes(), 0);
  AlignedBuffer second = MustAcquire(pool, 100);
  EXPECT_NE(second.data(), memory);
  pool.TakeBack(std::move(first));  // There is no room to keep the buffer.
  pool.Release(std::move(second));
  pool.GiveAway(MustAcquire(pool, 100).size());  // The new owner frees the buffer.
  AlignedBuffer third = MustAcquire(pool, 60);
  const uint8_t* const kept = third.data();
  pool.GiveAway(third.size());
  pool.TakeBack(std::move(third));
  EXPECT_EQ(MustAcquire(pool, 60).data(), kept);
}

TEST(BufferPoolTest, WeakPointersToASealedBufferExpireWhenItMakesRoom) {
  BufferPool pool({.budget_bytes = 100'000});
  AlignedBuffer sealed = MustAcquire(pool, 60'000, BufferKind::kSealed);
  const std::weak_ptr<const SealedMemory> listed = sealed.sealed();
  pool.Release(std::move(sealed));
  EXPECT_FALSE(listed.expired());
  MustAcquire(pool, 60'000);
  EXPECT_TRUE(listed.expired());
}

TEST(BufferPoolTest, BeyondMaxSealedRequestsForSealedMemoryGetPrivateMemory) {
  BufferPool pool({.budget_bytes = 200'000, .max_sealed = 2});
  AlignedBuffer first = MustAcquire(pool, 10'000, BufferKind::kSealed);
  AlignedBuffer second = MustAcquire(pool, 10'000, BufferKind::kSealed);
  EXPECT_NE(first.sealed(), nullptr);
  EXPECT_NE(second.sealed(), nullptr);
  EXPECT_EQ(MustAcquire(pool, 10'000, BufferKind::kSealed).sealed(), nullptr);
  // A kept sealed buffer still counts, and is handed out again.
  const uint64_t id = first.sealed()->id();
  pool.Release(std::move(first));
  AlignedBuffer again = MustAcquire(pool, 10'000, BufferKind::kSealed);
  ASSERT_NE(again.sealed(), nullptr);
  EXPECT_EQ(again.sealed()->id(), id);
  EXPECT_EQ(MustAcquire(pool, 10'000, BufferKind::kSealed).sealed(), nullptr);
}

TEST(BufferPoolTest, AtMaxSealedAKeptSealedBufferOfAnotherSizeIsFreed) {
  BufferPool pool({.budget_bytes = 200'000, .max_sealed = 1});
  pool.Release(MustAcquire(pool, 30'000));
  AlignedBuffer old = MustAcquire(pool, 10'000, BufferKind::kSealed);
  const std::weak_ptr<const SealedMemory> listed = old.sealed();
  pool.Release(std::move(old));
  EXPECT_NE(MustAcquire(pool, 20'000, BufferKind::kSealed).sealed(), nullptr);
  EXPECT_TRUE(listed.expired());
}

TEST(BufferPoolTest, AFreedSealedBufferNoLongerCountsAgainstMaxSealed) {
  BufferPool pool({.budget_bytes = 100'000, .max_sealed = 1});
  pool.Release(MustAcquire(pool, 60'000, BufferKind::kSealed));
  pool.Release(MustAcquire(pool, 90'000));  // Frees the kept sealed buffer.
  EXPECT_NE(MustAcquire(pool, 60'000, BufferKind::kSealed).sealed(), nullptr);
}

TEST(BufferPoolTest, WithoutADescriptorSealedRequestsGetReusablePrivateMemory) {
  BufferPool pool({.budget_bytes = 200'000});
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  AlignedBuffer buffer = MustAcquire(pool, 60'000, BufferKind::kSealed);
  const uint8_t* const place = buffer.data();
  pool.Release(std::move(buffer));
  AlignedBuffer again = MustAcquire(pool, 60'000, BufferKind::kSealed);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(again.sealed(), nullptr);
  EXPECT_EQ(again.data(), place);  // It is the same buffer again.
}

}  // namespace
}  // namespace systole
