#include "core/interrupt/interrupt.h"

#include <cstddef>
#include <vector>

#include "core/concurrency/worker_pool.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(InterruptTest, WithoutAScopeNothingIsInterrupted) { EXPECT_FALSE(InterruptRequested()); }

TEST(InterruptTest, AnInnerScopeReplacesTheOuterFlagUntilItEnds) {
  InterruptFlag outer;
  InterruptFlag inner;
  const InterruptScope scope(outer);
  {
    const InterruptScope within(inner);
    outer.Raise();
    EXPECT_FALSE(InterruptRequested());
    inner.Raise();
    EXPECT_TRUE(InterruptRequested());
  }
  EXPECT_TRUE(InterruptRequested());
}

TEST(InterruptTest, AScopeDoesNotInterruptOtherThreads) {
  InterruptFlag flag;
  flag.Raise();
  const InterruptScope scope(flag);
  bool interrupted = true;
  // The pool's destructor waits for the task.
  WorkerPool(1).Submit([&interrupted] { interrupted = InterruptRequested(); });
  EXPECT_FALSE(interrupted);
}

TEST(InterruptTest, HeededInterruptFlagIsThatOfTheInnermostScopeOrNull) {
  EXPECT_EQ(HeededInterruptFlag(), nullptr);
  InterruptFlag outer;
  InterruptFlag inner;
  const InterruptScope scope(outer);
  {
    const InterruptScope within(inner);
    EXPECT_EQ(HeededInterruptFlag(), &inner);
  }
  EXPECT_EQ(HeededInterruptFlag(), &outer);
}

TEST(InterruptTest, AnotherThreadCanLookAtTheFlagThatAThreadHeeds) {
  InterruptFlag flag;
  const InterruptScope scope(flag);
  const auto raised_on_another_thread = [heeded = HeededInterruptFlag()] {
    bool raised = false;
    WorkerPool(1).Submit([heeded, &raised] {
      EXPECT_EQ(HeededInterruptFlag(), nullptr);
      raised = heeded->is_raised();
    });
    return raised;
  };
  EXPECT_FALSE(raised_on_another_thread());
  flag.Raise();
  EXPECT_TRUE(raised_on_another_thread());
}

TEST(InterruptTest, PartsCoverEachElementOnceAndBeginAtPixels) {
  std::vector<int> seen(1'000'000);
  InParts(seen.size(), [&](size_t begin, size_t end) {
    EXPECT_EQ(begin % 3, 0u);
    for (size_t i = begin; i < end; ++i) ++seen[i];
  });
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
}

TEST(InterruptTest, NoPartBeginsAfterTheFlagWasRaised) {
  InterruptFlag flag;
  const InterruptScope scope(flag);
  int parts = 0;
  InParts(1'000'000, [&](size_t, size_t) {
    ++parts;
    flag.Raise();
  });
  EXPECT_EQ(parts, 1);
}

}  // namespace
}  // namespace systole
