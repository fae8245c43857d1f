// Tests feeds of several datasets: mixtures and concatenations.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/batch/slice_layout.h"
#include "core/engine/step_engine.h"
#include "core/plan/feed_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/engine/plan_of_members.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The digests of all slices of `steps` steps from `first` on.
std::vector<std::string> Digests(const std::shared_ptr<const FeedPlan>& plan, int64_t first,
                                 int64_t steps, int threads = 1) {
  StepEngine engine({.threads = threads, .max_threads = threads});
  const auto stream =
      engine.Open(plan, {.first_step = first, .count = steps, .core_end = plan->num_cores()});
  EXPECT_THAT(stream, IsOk());
  std::vector<std::string> digests;
  while (true) {
    const StepStream::Result slice = (*stream)->Next();
    EXPECT_THAT(slice, IsOk());
    if (!slice.ok() || !slice->has_value()) return digests;
    digests.push_back(SliceDigest((**slice)->layout(), (**slice)->data()));
  }
}

// The values of one tensor in all steps of a feed of one core.
template <typename T>
std::vector<T> Values(const std::shared_ptr<const FeedPlan>& plan, const std::string& tensor) {
  StepEngine engine({.threads = 2});
  const auto stream = engine.Open(plan, {.count = 1000, .core_end = 1});
  EXPECT_THAT(stream, IsOk());
  std::vector<T> values;
  while (true) {
    const StepStream::Result slice = (*stream)->Next();
    EXPECT_THAT(slice, IsOk());
    if (!slice.ok() || !slice->has_value()) return values;
    const SliceLayout& layout = (**slice)->layout();
    const TensorView view = layout.View(layout.IndexOf(tensor), (**slice)->data());
    const absl::Span<const T> some = view.As<T>();
    values.insert(values.end(), some.begin(), some.end());
  }
}

// `a` has the test records 0 .. 8, and `b` has the test records 9 .. 19.
Datasets TwoDatasets() {
  const std::vector<std::string> shards = TestShards({4, 5, 11});
  return {{"a", OpenTestDataset({shards[0], shards[1]}, "a")},
          {"b", OpenTestDataset({shards[2]}, "b")}};
}

constexpr char kShuffled[] = "seed: 3 shuffle { mode: GLOBAL } ";

TEST(MembersTest, AConcatenationFeedsWhatOneDatasetOfAllShardsDoes) {
  const std::string rest =
      absl::StrCat(kShuffled, "global_batch: 6 num_cores: 2 epochs: 2 tail: PAD", AllOutputs());
  const auto whole =
      PlanOf("dataset: 'test' " + rest, {{"test", OpenTestDataset(TestShards({4, 5, 11}))}});
  const auto joined = PlanOf(
      "concatenation { dataset: 'a' } concatenation { dataset: 'b' } " + rest, TwoDatasets());
  ASSERT_THAT(whole, IsOk());
  ASSERT_THAT(joined, IsOk());
  EXPECT_EQ(Digests(*joined, 0, 100), Digests(*whole, 0, 100));
  EXPECT_EQ((*joined)->dataset().fingerprint(), (*whole)->dataset().fingerprint());
  EXPECT_EQ((*joined)->order_fingerprint(), (*whole)->order_fingerprint());
}

// The feed has the records of tf.data's a.repeat(2).concatenate(b).
TEST(MembersTest, AMemberThatIsNamedTwiceIsRepeated) {
  const auto plan =
      PlanOf(absl::StrCat("concatenation { dataset: 'a' } concatenation { dataset: 'a' } "
                          "concatenation { dataset: 'b' } global_batch: 1 num_cores: 1 epochs: 1",
                          AllOutputs()),
             TwoDatasets());
  ASSERT_THAT(plan, IsOk());
  const std::vector<int64_t> ids = Values<int64_t>(*plan, "id");
  const std::vector<int64_t> pairs = Values<int64_t>(*plan, "pair");
  ASSERT_EQ(ids.size(), 29u);
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(ids[i], i);  // The second copy of `a` has its own ids.
    EXPECT_EQ(pairs[2 * i], i < 9 ? i : i - 9);
  }
}

std::string MixedSpec(const std::string& more) {
  return absl::StrCat("mixture { dataset: 'a' weight: 1 } mixture { dataset: 'b' weight: 3 } ",
                      kShuffled, more, AllOutputs());
}

TEST(MembersTest, AMixturesBytesDoNotDependOnThreadsOrWhereAStreamBegins) {
  for (const std::string weights :
       {"", "weights { from_step: 2 weights: [1, 0] } weights { from_step: 7 weights: [2, 3] } "}) {
    const auto plan =
        PlanOf(MixedSpec("global_batch: 6 num_cores: 2 epochs: 4 " + weights), TwoDatasets());
    ASSERT_THAT(plan, IsOk());
    const std::vector<std::string> all = Digests(*plan, 0, 100);
    EXPECT_EQ(all.size(), 4u * 3u * 2u);
    EXPECT_EQ(Digests(*plan, 0, 100, 8), all);
    for (int64_t first = 1; first < 12; ++first) {
      const std::vector<std::string> tail = Digests(*plan, first, 100);
      EXPECT_EQ(tail, std::vector<std::string>(all.begin() + first * 2, all.end()));
    }
  }
}

TEST(MembersTest, AChangeOfWeightsHoldsFromItsStepOn) {
  const std::string spec = "global_batch: 6 num_cores: 1 epochs: 4 ";
  const auto ids = [&](const std::string& weights) {
    const auto plan = PlanOf(MixedSpec(spec + weights), TwoDatasets());
    EXPECT_THAT(plan, IsOk());
    return Values<int64_t>(*plan, "id");
  };
  const std::vector<int64_t> never = ids("");
  const std::vector<int64_t> once = ids("weights { from_step: 4 weights: [1, 0] }");
  ASSERT_EQ(never.size(), 12u * 6u);
  EXPECT_TRUE(std::equal(never.begin(), never.begin() + 24, once.begin()));
  for (size_t i = 24; i < once.size(); ++i) EXPECT_LT(once[i], 9);  // Records of `a` alone.
}

TEST(MembersTest, RecordIdsCountMemberAfterMemberAndNameTheRightRecords) {
  const auto plan = PlanOf(MixedSpec("global_batch: 6 num_cores: 1 epochs: 2 "), TwoDatasets());
  ASSERT_THAT(plan, IsOk());
  const std::vector<int64_t> ids = Values<int64_t>(*plan, "id");
  const std::vector<int64_t> pairs = Values<int64_t>(*plan, "pair");
  ASSERT_EQ(ids.size(), 36u);
  int of_a = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(pairs[2 * i], ids[i]);
    of_a += ids[i] < 9 ? 1 : 0;
  }
  EXPECT_EQ(of_a, 9);
}

TEST(MembersTest, ARecordRepeatedWithinAnEpochGetsNewRandomDraws) {
  const Datasets datasets = {{"a", OpenTestDataset(TestShards({1}), "a")},
                             {"b", OpenTestDataset(TestShards({7}), "b")}};
  const auto plan = PlanOf(
      "mixture { dataset: 'a' weight: 1 } mixture { dataset: 'b' weight: 1 } global_batch: 8 "
      "num_cores: 1 epochs: 1 outputs { name: 'weight' feature: 'weight' dtype: FLOAT32 "
      "transforms { brightness { delta_min: 0 delta_max: 1 } } shape: [1, 1, 1] }",
      datasets);
  ASSERT_THAT(plan, IsOk());
  const std::vector<float> drawn = Values<float>(*plan, "weight");
  ASSERT_EQ(drawn.size(), 8u);
  const std::set<float> of_the_one_record = {drawn[0], drawn[2], drawn[4], drawn[6]};
  EXPECT_EQ(of_the_one_record.size(), 4u);
}

TEST(MembersTest, ADatasetMayBeAMemberTwice) {
  const auto plan = PlanOf(
      "mixture { dataset: 'a' weight: 1 select { take: 2 } } "
      "mixture { dataset: 'a' weight: 1 select { skip: 7 } } global_batch: 4 num_cores: 1 "
      "epochs: 1 outputs { name: 'id' feature: 'record_id' dtype: INT64 } "
      "outputs { name: 'pair' feature: 'pair' shape: 2 dtype: INT64 }",
      TwoDatasets());
  ASSERT_THAT(plan, IsOk());
  EXPECT_THAT(Values<int64_t>(*plan, "id"), ElementsAre(0, 16, 1, 17));
  EXPECT_THAT(Values<int64_t>(*plan, "pair"), ElementsAre(0, 0, 7, -7, 1, -1, 8, -8));
}

TEST(MembersTest, DamageIsLoggedForTheMemberUnderItsOwnRecordNumber) {
  Datasets datasets = TwoDatasets();
  std::string damaged = TestShards({4, 5, 11})[2];
  damaged[damaged.size() / 2] ^= 1;
  datasets["b"] = OpenTestDataset({damaged}, "b");
  const std::string mask = "global_batch: 5 num_cores: 1 epochs: 2 on_corrupt: MASK ";
  const auto plan = PlanOf(MixedSpec(mask), datasets);
  ASSERT_THAT(plan, IsOk());
  Digests(*plan, 0, 100);
  EXPECT_TRUE(datasets["a"]->damage().entries().empty());
  const std::vector<DamageLog::Entry> of_b = datasets["b"]->damage().entries();
  const std::vector<DamageLog::Entry> of_both = (*plan)->dataset().damage().entries();
  ASSERT_EQ(of_b.size(), 1u);
  ASSERT_EQ(of_both.size(), 1u);
  EXPECT_EQ(of_both[0].record, of_b[0].record + 9);

  const auto fails = PlanOf(MixedSpec("global_batch: 5 num_cores: 1 epochs: 2 "), datasets);
  ASSERT_THAT(fails, IsOk());
  StepEngine engine({.threads = 1, .max_threads = 1});
  const auto stream = engine.Open(*fails, {.count = 100, .core_end = 1});
  ASSERT_THAT(stream, IsOk());
  StepStream::Result slice = (*stream)->Next();
  while (slice.ok()) slice = (*stream)->Next();
  EXPECT_THAT(slice.status(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("shard-0")));
}

TEST(MembersTest, EveryMemberHasToHaveTheFeatures) {
  Datasets datasets = TwoDatasets();
  ShardBuilder other;
  other.Add(ExampleBuilder().AddInt64s("label", {1, 2}).AddFloats("pair", {1, 2}).Serialize());
  datasets["c"] = OpenTestDataset({other.Build()}, "c");
  const auto refusal = [&](const std::string& output) {
    const auto plan =
        PlanOf(absl::StrCat("concatenation { dataset: 'a' } concatenation { dataset: 'c' } "
                            "global_batch: 1 num_cores: 1 outputs { name: 'out' ",
                            output, " }"),
               datasets);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(plan.status().message());
  };
  EXPECT_THAT(
      refusal("feature: 'label' dtype: INT64"),
      AllOf(HasSubstr("dataset 'c': output 'out': shape has 1 element"), HasSubstr("2 values")));
  EXPECT_THAT(refusal("feature: 'pair' shape: 2 dtype: INT64"),
              HasSubstr("the feature 'pair' is of another kind in dataset 'c'"));
  EXPECT_THAT(refusal("feature: 'weight' dtype: FLOAT32"),
              HasSubstr("the first record of dataset 'c' has no feature 'weight'"));
}

TEST(MembersTest, UnknownMembersAndTwoKindsOfSourceAreRefused) {
  const std::string rest =
      " global_batch: 1 num_cores: 1 "
      "outputs { name: 'label' feature: 'label' dtype: INT64 }";
  EXPECT_THAT(
      PlanOf("concatenation { dataset: 'a' } concatenation { dataset: 'z' }" + rest, TwoDatasets()),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("'z'")));
  EXPECT_THAT(PlanOf("dataset: 'a' mixture { dataset: 'b' weight: 1 }" + rest, TwoDatasets()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want exactly one")));
}

}  // namespace
}  // namespace systole
