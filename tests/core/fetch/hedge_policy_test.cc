#include "core/fetch/hedge_policy.h"

#include <cstdint>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

constexpr uint64_t kSize = 4 << 20;

TEST(HedgePolicyTest, AReadIsSlowAfterTwiceThe95thPercentileOfReads) {
  HedgePolicy policy;
  for (int i = 0; i < 100; ++i) policy.Add(kSize, absl::Milliseconds(i < 96 ? 200 : 9000));
  EXPECT_FALSE(policy.IsSlow(kSize, absl::Milliseconds(400)));
  EXPECT_TRUE(policy.IsSlow(kSize, absl::Milliseconds(401)));
}

TEST(HedgePolicyTest, NoReadIsSlowBeforeATenthOfASecond) {
  HedgePolicy policy;
  for (int i = 0; i < 100; ++i) policy.Add(kSize, absl::Milliseconds(1));
  EXPECT_FALSE(policy.IsSlow(kSize, absl::Milliseconds(99)));
  EXPECT_TRUE(policy.IsSlow(kSize, absl::Milliseconds(100)));
}

TEST(HedgePolicyTest, NothingIsSlowUntilSixteenReadsOfAboutThatSizeAreKnown) {
  HedgePolicy policy;
  for (int i = 0; i < 15; ++i) policy.Add(kSize, absl::Milliseconds(1));
  for (int i = 0; i < 100; ++i) policy.Add(kSize / 4, absl::Milliseconds(1));
  EXPECT_FALSE(policy.IsSlow(kSize, absl::Hours(1)));
  policy.Add(kSize + kSize / 2, absl::Milliseconds(1));
  EXPECT_TRUE(policy.IsSlow(kSize, absl::Hours(1)));
}

TEST(HedgePolicyTest, OnlyRecentReadsDecideWhatIsSlow) {
  HedgePolicy policy;
  for (int i = 0; i < 1000; ++i) policy.Add(kSize, absl::Seconds(5));
  for (size_t i = 0; i < HedgePolicy::kRemembered; ++i) policy.Add(kSize, absl::Milliseconds(100));
  EXPECT_TRUE(policy.IsSlow(kSize, absl::Milliseconds(201)));
}

TEST(HedgePolicyTest, SecondReadsAreAtMostATwentiethOfAll) {
  HedgePolicy policy;
  int hedges = 0;
  for (int i = 0; i < 1000; ++i) {
    policy.Add(kSize, absl::Seconds(1));
    for (; policy.MayHedge(); ++hedges) policy.CountHedge();
  }
  EXPECT_EQ(hedges, 50);
}

}  // namespace
}  // namespace systole
