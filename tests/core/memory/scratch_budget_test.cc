#include "core/memory/scratch_budget.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace systole {
namespace {

using Account = ScratchBudget::Account;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kCapacity = 256 * kMiB;

TEST(ScratchBudgetTest, UsedBytesFollowWhatIsTakenGivenBackAndKept) {
  ScratchBudget budget(kCapacity);
  Account a, b;
  EXPECT_TRUE(budget.Take(a, 5 * kMiB));
  EXPECT_TRUE(budget.Take(b, 100 * kMiB));
  EXPECT_EQ(budget.used_bytes(), 105 * kMiB);
  budget.GiveBack(b, 60 * kMiB);
  EXPECT_EQ(budget.used_bytes(), 45 * kMiB);
  EXPECT_TRUE(budget.EndTurn(a, 5 * kMiB));
  EXPECT_TRUE(budget.EndTurn(b, 0));
  EXPECT_EQ(budget.used_bytes(), 5 * kMiB);
  EXPECT_EQ(budget.beyond_bytes(), 0);
}

TEST(ScratchBudgetTest, TheElderMayExceedTheCapacityWhileOthersWaitInOrder) {
  ScratchBudget budget(kCapacity);
  Account elder, second, third;
  EXPECT_TRUE(budget.Take(elder, 1000 * kMiB));  // Only the elder may take so much.
  EXPECT_TRUE(budget.IsElder(elder));
  EXPECT_FALSE(budget.Take(second, 1000 * kMiB));
  EXPECT_FALSE(budget.Take(third, 500 * kMiB));
  EXPECT_TRUE(budget.Take(elder, kMiB));
  EXPECT_TRUE(budget.EndTurn(elder, 0));
  EXPECT_TRUE(budget.IsElder(second));
  EXPECT_FALSE(budget.Take(third, 500 * kMiB));  // `third` came later than `second`.
  EXPECT_TRUE(budget.Take(second, 1000 * kMiB));
  EXPECT_TRUE(budget.EndTurn(second, 0));
  EXPECT_TRUE(budget.Take(third, 500 * kMiB));
  EXPECT_FALSE(budget.someone_waits());
}

// Each account holds memory that the other account waits for.
TEST(ScratchBudgetTest, TwoAccountsThatGrowDoNotDeadlock) {
  ScratchBudget budget(kCapacity);
  Account a, b;
  EXPECT_TRUE(budget.Take(a, 90 * kMiB));
  EXPECT_TRUE(budget.Take(b, 90 * kMiB));
  EXPECT_TRUE(budget.Take(a, 150 * kMiB));
  EXPECT_FALSE(budget.Take(b, 150 * kMiB));
  EXPECT_TRUE(budget.EndTurn(a, 0));
  EXPECT_TRUE(budget.Take(b, 150 * kMiB));
}

TEST(ScratchBudgetTest, RequestsOfOrdinarySizeDoNotWaitForLargeOnes) {
  ScratchBudget budget(kCapacity);
  std::array<Account, 3> large;
  EXPECT_TRUE(budget.Take(large[0], 180 * kMiB));
  EXPECT_TRUE(budget.Take(large[1], 180 * kMiB));  // This account becomes the elder.
  EXPECT_FALSE(budget.Take(large[2], 180 * kMiB));
  std::array<Account, 8> ordinary;
  for (Account& account : ordinary) {
    EXPECT_TRUE(budget.Take(account, ScratchBudget::kOrdinaryBytes));
  }
  EXPECT_LE(budget.used_bytes() - budget.beyond_bytes(), kCapacity);
}

TEST(ScratchBudgetTest, AnAccountThatLeavesTheQueueDoesNotBlockTheNext) {
  ScratchBudget budget(kCapacity);
  Account elder, second, third;
  EXPECT_TRUE(budget.Take(elder, 1000 * kMiB));
  EXPECT_FALSE(budget.Take(second, 1000 * kMiB));
  EXPECT_FALSE(budget.Take(third, 1000 * kMiB));
  budget.Leave(second);
  EXPECT_TRUE(budget.EndTurn(elder, 0));
  EXPECT_TRUE(budget.IsElder(third));
  budget.Leave(third);  // The elder may leave, too.
  EXPECT_FALSE(budget.IsElder(third));
  EXPECT_TRUE(budget.Take(second, 1000 * kMiB));
  EXPECT_EQ(budget.used_bytes(), 1000 * kMiB);
}

TEST(ScratchBudgetTest, AfterAHungElderStepsDownOtherAccountsProceed) {
  ScratchBudget budget(kCapacity);
  Account hangs, second, third, small;
  EXPECT_TRUE(budget.Take(hangs, 1000 * kMiB));
  EXPECT_FALSE(budget.Take(second, 1000 * kMiB));
  budget.StepDown(hangs);
  EXPECT_TRUE(budget.Take(second, 1000 * kMiB));
  EXPECT_TRUE(budget.Take(small, kMiB));
  EXPECT_FALSE(budget.Take(third, 500 * kMiB));
  EXPECT_FALSE(budget.Take(hangs, kMiB));  // The hung thread goes on, and waits like others.
  EXPECT_TRUE(budget.EndTurn(second, 0));
  EXPECT_TRUE(budget.Take(third, 500 * kMiB));
  EXPECT_TRUE(budget.EndTurn(third, 0));
  EXPECT_TRUE(budget.Take(hangs, kMiB));
  EXPECT_TRUE(budget.EndTurn(hangs, 0));
  EXPECT_EQ(budget.beyond_bytes(), 0);
  EXPECT_EQ(budget.used_bytes(), kMiB);
}

TEST(ScratchBudgetTest, AccountsKeepAtMostSevenEighthsOfTheCapacity) {
  ScratchBudget budget(kCapacity);
  std::array<Account, 16> accounts;
  int64_t kept = 0;
  for (Account& account : accounts) {
    ASSERT_TRUE(budget.Take(account, 20 * kMiB));
    if (budget.EndTurn(account, 20 * kMiB)) kept += 20 * kMiB;
    EXPECT_EQ(budget.used_bytes(), kept);
  }
  EXPECT_GT(kept, kCapacity / 2);
  EXPECT_LE(kept, kCapacity / 8 * 7);
}

TEST(ScratchBudgetTest, AnElderKeepsNothingThatDoesNotFit) {
  ScratchBudget budget(kCapacity);
  Account others, elder;
  EXPECT_TRUE(budget.Take(others, 180 * kMiB));
  EXPECT_TRUE(budget.Take(elder, 100 * kMiB));
  EXPECT_FALSE(budget.EndTurn(elder, 100 * kMiB));
  EXPECT_EQ(budget.used_bytes(), 180 * kMiB);
  EXPECT_FALSE(budget.IsElder(elder));
}

// Simulates threads. Each thread does everything that a thread may do, in random order: it takes
// memory several times, waits, gives up, gives memory back, hangs, and keeps memory. At the end
// each thread must get what it waits for.
class RandomScratch {
 public:
  explicit RandomScratch(unsigned seed) : draw_(seed), threads_(2 + Draw(7)) {}

  void Run() {
    for (int i = 0; i < 3000; ++i) {
      Act(threads_[Draw(threads_.size())]);
      Check();
    }
    // No thread makes a new request, so each waiting thread is served after a bounded number of
    // rounds.
    for (size_t rounds = 0; rounds < 2 * threads_.size(); ++rounds) {
      for (Thread& thread : threads_) {
        if (thread.wants > 0) TakeAgain(thread);
        if (thread.wants == 0) EndTurn(thread, 0);
        Check();
      }
    }
    for (const Thread& thread : threads_) EXPECT_EQ(thread.wants, 0);
    EXPECT_EQ(budget_.used_bytes(), 0);
    EXPECT_FALSE(budget_.someone_waits());
  }

 private:
  struct Thread {
    Account account;
    int64_t wants = 0;  // The bytes that the thread waits for.
    int64_t held = 0;
    int64_t kept = 0;
  };

  int64_t Draw(size_t end) { return static_cast<int64_t>(draw_() % end); }

  int64_t Bytes() {
    switch (Draw(4)) {
      case 0:
        return Draw(kMiB);
      case 1:
        return Draw(4 * kMiB);
      case 2:
        return Draw(kCapacity);
      default:
        return Draw(4 * kCapacity);
    }
  }

  void TakeAgain(Thread& thread) {
    if (!budget_.Take(thread.account, thread.wants)) return;
    thread.held += thread.wants;
    thread.wants = 0;
  }

  void EndTurn(Thread& thread, int64_t kept) {
    thread.held = thread.kept = budget_.EndTurn(thread.account, kept) ? kept : 0;
  }

  void Act(Thread& thread) {
    if (thread.wants > 0) {
      if (Draw(20) == 0) {
        budget_.Leave(thread.account);  // An interrupt also ends the thread's turn.
        thread.wants = 0;
        return EndTurn(thread, 0);
      }
      return TakeAgain(thread);
    }
    switch (Draw(8)) {
      case 0:
        return budget_.StepDown(thread.account);
      case 1: {
        const int64_t bytes = std::min(Bytes(), thread.held - thread.kept);
        budget_.GiveBack(thread.account, bytes);
        thread.held -= bytes;
        return;
      }
      case 2:
      case 3:
        return EndTurn(thread, std::min(Bytes() / 8, thread.held));
      default:
        thread.wants = 1 + Bytes();
        return TakeAgain(thread);
    }
  }

  void Check() {
    int64_t used = 0, kept = 0;
    bool waits = false;
    bool elder = false;
    for (Thread& thread : threads_) {
      used += thread.held;
      kept += thread.kept;
      waits = waits || thread.wants > 0;
      elder = elder || budget_.IsElder(thread.account);
      ASSERT_EQ(thread.account.held_bytes(), thread.held);
      ASSERT_EQ(thread.account.waits(), thread.wants > 0);
    }
    ASSERT_EQ(budget_.used_bytes(), used);
    ASSERT_LE(used - budget_.beyond_bytes(), kCapacity);
    ASSERT_LE(kept, kCapacity / 8 * 7);
    ASSERT_TRUE(!waits || elder);  // One thread can always go on.
  }

  std::mt19937 draw_;
  ScratchBudget budget_{kCapacity};
  std::vector<Thread> threads_;
};

TEST(ScratchBudgetTest, InRandomOrdersTheCapacityHoldsAndNoAccountStarves) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomScratch(seed).Run();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace systole
