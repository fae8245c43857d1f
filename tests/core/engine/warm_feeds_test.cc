#include "core/engine/warm_feeds.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/plan/feed_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

// An epoch has 40 records in 5 steps.
std::shared_ptr<const FeedPlan> MakePlan(const std::shared_ptr<Dataset>& dataset, int seed = 0) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText(absl::StrCat("dataset: 'test' global_batch: 8 seed: ", seed,
                                " outputs { name: 'id' feature: 'record_id' dtype: INT64 }")),
      dataset);
  EXPECT_THAT(plan, IsOk());
  return *plan;
}

TEST(WarmFeedsTest, AFeedIsWarmAfterAnEpochWithoutAMiss) {
  const auto plan = MakePlan(OpenTestDataset(TestShards({40})));
  WarmFeeds feeds;
  for (int round = 0; round < 2; ++round) {
    for (int task = 0; task < 4; ++task) EXPECT_FALSE(feeds.Found(*plan, 8));
    EXPECT_FALSE(feeds.Found(*plan, 7));
    EXPECT_TRUE(feeds.Found(*plan, 1));
    EXPECT_TRUE(feeds.Found(*plan, 8));
    feeds.Missed(*plan);
  }
}

TEST(WarmFeedsTest, AFeedIsWarmWhoeverOpensItAndOtherFeedsAreNot) {
  const auto dataset = OpenTestDataset(TestShards({40}));
  WarmFeeds feeds;
  EXPECT_TRUE(feeds.Found(*MakePlan(dataset), 40));
  EXPECT_TRUE(feeds.Found(*MakePlan(dataset), 8));
  const auto other = MakePlan(dataset, /*seed=*/1);
  EXPECT_FALSE(feeds.Found(*other, 8));
  feeds.Missed(*other);
  EXPECT_TRUE(feeds.Found(*MakePlan(dataset), 8));
}

TEST(WarmFeedsTest, AFeedForgottenBeyondTheMaximumIsWarmAfterAnotherEpoch) {
  const auto dataset = OpenTestDataset(TestShards({40}));
  const auto first = MakePlan(dataset);
  WarmFeeds feeds;
  EXPECT_TRUE(feeds.Found(*first, 40));
  for (int seed = 1; seed < static_cast<int>(WarmFeeds::kMaxFeeds); ++seed) {
    feeds.Found(*MakePlan(dataset, seed), 40);
  }
  EXPECT_TRUE(feeds.Found(*first, 1));
  feeds.Found(*MakePlan(dataset, WarmFeeds::kMaxFeeds), 40);
  EXPECT_FALSE(feeds.Found(*first, 1));
  EXPECT_TRUE(feeds.Found(*first, 39));
}

}  // namespace
}  // namespace systole
