#include "client/cli/shards/pack_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Shards = std::vector<std::vector<int64_t>>;

std::vector<int64_t> Labels(std::vector<int64_t> images_of_class) {
  std::vector<int64_t> labels;
  for (size_t label = 0; label < images_of_class.size(); ++label) {
    labels.insert(labels.end(), images_of_class[label], label);
  }
  return labels;
}

std::vector<int64_t> Flat(const Shards& shards) {
  std::vector<int64_t> all;
  for (const auto& shard : shards) all.insert(all.end(), shard.begin(), shard.end());
  return all;
}

TEST(PackPlanTest, EveryImageStandsInExactlyOneShard) {
  const std::vector<int64_t> labels = Labels({33, 1, 58, 20});
  const absl::StatusOr<PackPlan> plan =
      PlanPack(labels, {.shards = 7, .validation = 0.3, .seed = 9});
  ASSERT_THAT(plan, IsOk());
  std::vector<int64_t> all = Flat(plan->train);
  const std::vector<int64_t> validation = Flat(plan->validation);
  all.insert(all.end(), validation.begin(), validation.end());
  EXPECT_EQ(all.size(), labels.size());
  EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), labels.size());
}

TEST(PackPlanTest, ShardsDifferByOneImageAtMost) {
  const absl::StatusOr<PackPlan> plan =
      PlanPack(Labels({50, 53}), {.shards = 8, .validation = 0.25});
  ASSERT_THAT(plan, IsOk());
  for (const Shards* shards : {&plan->train, &plan->validation}) {
    const auto [least, most] = std::minmax_element(
        shards->begin(), shards->end(), [](auto& a, auto& b) { return a.size() < b.size(); });
    EXPECT_LE(most->size() - least->size(), 1u);
  }
}

TEST(PackPlanTest, ValidationTakesTheSamePartOfEachClass) {
  const std::vector<int64_t> labels = Labels({100, 40, 10});
  const absl::StatusOr<PackPlan> plan = PlanPack(labels, {.shards = 4, .validation = 0.2});
  ASSERT_THAT(plan, IsOk());
  std::map<int64_t, int64_t> taken;
  for (const int64_t i : Flat(plan->validation)) ++taken[labels[i]];
  EXPECT_EQ(taken[0], 20);
  EXPECT_EQ(taken[1], 8);
  EXPECT_EQ(taken[2], 2);
}

TEST(PackPlanTest, ValidationShardsAreAboutAsLargeAsTrainShards) {
  const std::vector<int64_t> labels = Labels({725, 725, 725, 725, 725});
  const absl::StatusOr<PackPlan> plan = PlanPack(labels, {.shards = 16, .validation = 0.2});
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(plan->train.size(), 16u);
  EXPECT_EQ(Flat(plan->train).size(), 2900u);
  EXPECT_EQ(plan->validation.size(), 4u);
  EXPECT_EQ(Flat(plan->validation).size(), 725u);
}

TEST(PackPlanTest, GrowingOneClassDoesNotMoveTheSplitOfAnother) {
  const auto validation_of_class_0 = [](const std::vector<int64_t>& labels) {
    const absl::StatusOr<PackPlan> plan = PlanPack(labels, {.shards = 2, .validation = 0.3});
    std::set<int64_t> images;
    for (const int64_t i : Flat(plan->validation)) {
      if (labels[i] == 0) images.insert(i);
    }
    return images;
  };
  EXPECT_EQ(validation_of_class_0(Labels({30, 30})), validation_of_class_0(Labels({30, 47})));
}

TEST(PackPlanTest, ClassesAreMixedWithinEachShard) {
  const std::vector<int64_t> labels = Labels({100, 100});
  const absl::StatusOr<PackPlan> plan = PlanPack(labels, {.shards = 4});
  ASSERT_THAT(plan, IsOk());
  for (const auto& shard : plan->train) {
    int64_t ones = 0;
    for (const int64_t i : shard) ones += labels[i];
    EXPECT_GT(ones, 10);  // 25 are expected, with a deviation of about 2.2.
    EXPECT_LT(ones, 40);
  }
}

// Checks the order itself, because shards packed last year must come out the same today.
TEST(PackPlanTest, OrderIsPinnedForASeedAndDiffersBetweenSeeds) {
  const std::vector<int64_t> labels = Labels({4, 4});
  const absl::StatusOr<PackPlan> plan =
      PlanPack(labels, {.shards = 2, .validation = 0.25, .seed = 1});
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(plan->train, ElementsAre(ElementsAre(0, 6, 1), ElementsAre(3, 4, 5)));
  EXPECT_THAT(plan->validation, ElementsAre(ElementsAre(2, 7)));
  const absl::StatusOr<PackPlan> other =
      PlanPack(Labels({40, 40}), {.shards = 2, .validation = 0.25, .seed = 2});
  const absl::StatusOr<PackPlan> again =
      PlanPack(Labels({40, 40}), {.shards = 2, .validation = 0.25, .seed = 3});
  EXPECT_NE(other->train, again->train);
  EXPECT_NE(other->validation, again->validation);
}

TEST(PackPlanTest, WithoutValidationThereAreNoValidationShards) {
  const absl::StatusOr<PackPlan> plan = PlanPack(Labels({3}), {.shards = 3});
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(Flat(plan->train).size(), 3u);
  EXPECT_TRUE(plan->validation.empty());
}

TEST(PackPlanTest, ImpossiblePlansAreRefused) {
  const struct {
    PackPlanOptions options;
    std::string message;
  } cases[] = {
      {{.shards = 0}, "--shards is 0"},
      {{.shards = 100'000}, "--shards is 100000"},
      {{.shards = 11}, "only 10 train images"},
      {{.shards = 9, .validation = 0.2}, "only 8 train images"},
      {{.shards = 1, .validation = 1.0}, "--validation is 1"},
      {{.shards = 1, .validation = -0.1}, "--validation is -0.1"},
      {{.shards = 1, .validation = 0.01}, "takes none of any class"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(PlanPack(Labels({5, 5}), c.options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)));
  }
  EXPECT_THAT(PlanPack(Labels({5}), {.shards = 1, .validation = 0.0 / 0.0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--validation")));
}

TEST(PackPlanTest, NamesShardsAsTensorFlowDoes) {
  EXPECT_EQ(ShardPath("/data/flowers", "train", 3, 16),
            "/data/flowers-train-00003-of-00016.tfrecord");
}

}  // namespace
}  // namespace systole
