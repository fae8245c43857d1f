// Tests feeds from storage that makes threads wait, and from storage that never answers.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/engine/step_engine.h"
#include "core/plan/feed_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/storage/gated_source.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSpec[] =
    "global_batch: 16 num_cores: 1 outputs { name: 'id' feature: 'record_id' dtype: INT64 }";
const StepRange kEpoch = {.count = 1000, .core_end = 1};
// A read that hangs fails after this time. A healthy read takes microseconds. Even on a busy
// machine it must not take this long.
const absl::Duration kReadTimeout = absl::Seconds(1);

std::shared_ptr<Dataset> OpenGated(const std::string& name, const std::shared_ptr<Gate>& gate) {
  std::vector<std::unique_ptr<const RecordSource>> shards;
  for (const std::string& bytes : TestShards(std::vector<int>(8, 16))) {
    absl::StatusOr<TfRecordShard> shard = TfRecordShard::Create(
        std::make_unique<GatedSource>(bytes, absl::StrCat("/data/", name, shards.size()), gate));
    SYSTOLE_CHECK(shard.ok());
    shards.push_back(std::make_unique<TfRecordShard>(*std::move(shard)));
  }
  absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Create(name, std::move(shards));
  SYSTOLE_CHECK(dataset.ok());
  return *dataset;
}

std::shared_ptr<const FeedPlan> PlanOver(const std::shared_ptr<Dataset>& dataset) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText(absl::StrCat("dataset: '", dataset->name(), "' epochs: 1 ", kSpec)), dataset);
  EXPECT_THAT(plan, IsOk());
  return *plan;
}

// Takes all slices of the feed. Returns their number, or the error that ends the feed.
absl::StatusOr<int> Drain(StepEngine& engine, const std::shared_ptr<const FeedPlan>& plan) {
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, kEpoch);
  if (!stream.ok()) return stream.status();
  for (int slices = 0;; ++slices) {
    StepStream::Result slice = (*stream)->Next();
    if (!slice.ok()) return slice.status();
    if (!slice->has_value()) return slices;
  }
}

TEST(SlowStorageTest, ThreadsAreAddedWhileReadsWaitForStorage) {
  const auto gate = std::make_shared<Gate>();
  const auto plan = PlanOver(OpenGated("slow", gate));
  // A read returns only once six reads wait at the same time.
  gate->Shut(/*crowd=*/6);
  StepEngine engine({.threads = 2});
  EXPECT_THAT(Drain(engine, plan), IsOkAndHolds(8));
}

TEST(SlowStorageTest, AThreadOfACancelledStreamReadsNothingMore) {
  const auto gate = std::make_shared<Gate>();
  const auto dataset = OpenGated("slow", gate);
  // A step is one task, which reads once from each of the eight shards.
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText("dataset: 'slow' shuffle { mode: GLOBAL } global_batch: 128 num_cores: 1 "
                   "outputs { name: 'path' feature: 'path' shape: 3 dtype: FLOAT32 }"),
      dataset);
  ASSERT_THAT(plan, IsOk());
  const int reads_before = gate->reads();
  gate->Shut();
  StepEngine engine({.threads = 1, .max_threads = 1});
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(*plan, kEpoch);
  ASSERT_THAT(stream, IsOk());
  ASSERT_TRUE(WaitUntil([&] { return gate->waiting() == 1; }));
  (*stream)->Cancel();
  EXPECT_FALSE(engine.CancelAll(absl::ZeroDuration()));  // The thread still reads.
  gate->Open();
  EXPECT_TRUE(engine.CancelAll(absl::InfiniteDuration()));
  EXPECT_EQ(gate->reads() - reads_before, 1);
  EXPECT_EQ(engine.GetStats().memory_used_bytes, 0);
}

TEST(SlowStorageTest, AReadThatNeverReturnsFailsItsStepAndLeavesOtherDatasetsAlone) {
  const auto gate = std::make_shared<Gate>();
  const auto hung = PlanOver(OpenGated("hung", gate));
  const auto healthy = PlanOver(OpenTestDataset(TestShards({16, 16}), "healthy"));
  gate->Shut();
  StepEngine engine({.threads = 1, .max_threads = 4, .read_timeout = kReadTimeout});
  // Each stream of the hung dataset stands for another try of a trainer.
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(Drain(engine, hung),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr("shard 'hung"), HasSubstr("has not returned for 1s"),
                               HasSubstr("check its mount"))));
    EXPECT_THAT(Drain(engine, healthy), IsOkAndHolds(2));
  }
  // One dataset may hold four sevenths of the 4 threads, rounded down, however many streams try to
  // read it.
  EXPECT_LE(gate->waiting(), 2);
  EXPECT_GT(engine.GetStats().threads_stuck, 0);
  EXPECT_GT(engine.GetStats().reads_timed_out, 0);
  // The hung reads may still write to their slices. So the memory of these slices still counts.
  EXPECT_GE(engine.GetStats().memory_used_bytes, gate->waiting() * hung->layout().slice_bytes());
  gate->Open();
  ASSERT_TRUE(WaitUntil([&] { return engine.GetStats().threads_stuck == 0; }));
  EXPECT_THAT(Drain(engine, hung), IsOkAndHolds(8));
  EXPECT_TRUE(WaitUntil([&] { return engine.GetStats().memory_used_bytes == 0; }));
}

TEST(SlowStorageTest, AHangingMemberFailsItsConcatenationOrMixtureButNotTheHealthyDataset) {
  const auto gate = std::make_shared<Gate>();
  const std::shared_ptr<Dataset> hung = OpenGated("hung", gate);
  const std::shared_ptr<Dataset> healthy = OpenTestDataset(TestShards({16, 16}), "healthy");
  absl::StatusOr<std::shared_ptr<Dataset>> joined = Dataset::Join({healthy, hung});
  ASSERT_THAT(joined, IsOk());
  const std::string members[] = {
      "concatenation { dataset: 'healthy' } concatenation { dataset: 'hung' }",
      "mixture { dataset: 'healthy' weight: 1 } mixture { dataset: 'hung' weight: 1 }"};
  std::vector<std::shared_ptr<const FeedPlan>> both;
  for (const std::string& of_feed : members) {
    absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
        FeedPlan::Create(SpecFromText(absl::StrCat(of_feed, " epochs: 1 ", kSpec)), *joined);
    ASSERT_THAT(plan, IsOk()) << of_feed;
    both.push_back(*plan);
  }
  const auto alone = PlanOver(healthy);
  gate->Shut();
  StepEngine engine({.threads = 1, .max_threads = 4, .read_timeout = kReadTimeout});
  for (int i = 0; i < 4; ++i) {
    SCOPED_TRACE(members[i % 2]);
    EXPECT_THAT(Drain(engine, both[static_cast<size_t>(i % 2)]),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("shard 'hung")));
    EXPECT_THAT(Drain(engine, alone), IsOkAndHolds(2));
  }
  gate->Open();
}

TEST(SlowStorageTest, AHangingMemberFailsItsZipButNotTheHealthyDataset) {
  const auto gate = std::make_shared<Gate>();
  const std::shared_ptr<Dataset> hung = OpenGated("hung", gate);
  const std::shared_ptr<Dataset> healthy = OpenTestDataset(TestShards({64, 64}), "healthy");
  const auto alone = PlanOver(healthy);
  std::vector<std::shared_ptr<const FeedPlan>> both;
  for (const std::string place : {"first", "last"}) {
    std::vector<ZippedMember> members = {{hung, "h/"}, {healthy, ""}};
    std::string zip = "zip { dataset: 'hung' prefix: 'h/' } zip { dataset: 'healthy' }";
    if (place == "last") {
      std::swap(members[0], members[1]);
      zip = "zip { dataset: 'healthy' } zip { dataset: 'hung' prefix: 'h/' }";
    }
    absl::StatusOr<std::shared_ptr<Dataset>> joined = Dataset::Zip(members);
    ASSERT_THAT(joined, IsOk());
    absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
        FeedPlan::Create(SpecFromText(absl::StrCat(zip, " epochs: 1 ", kSpec)), *joined);
    ASSERT_THAT(plan, IsOk());
    both.push_back(*plan);
  }
  gate->Shut();
  StepEngine engine({.threads = 1, .max_threads = 4, .read_timeout = kReadTimeout});
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(Drain(engine, both[static_cast<size_t>(i % 2)]),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr("dataset 'hung', shard"), Not(HasSubstr("'healthy'")))));
    EXPECT_THAT(Drain(engine, alone), IsOkAndHolds(8));
  }
  gate->Open();
}

// A task reads from several shards. Only reads of the shard `hung1` hang.
TEST(SlowStorageTest, TheErrorOfAHangingReadNamesTheDatasetAndShardThatHang) {
  const auto gate = std::make_shared<Gate>();
  std::vector<std::unique_ptr<const RecordSource>> shards;
  for (const std::string& bytes : TestShards({16, 16})) {
    absl::StatusOr<TfRecordShard> shard = TfRecordShard::Create(
        std::make_unique<GatedSource>(bytes, absl::StrCat("/data/hung", shards.size()),
                                      shards.empty() ? std::make_shared<Gate>() : gate));
    ASSERT_THAT(shard, IsOk());
    shards.push_back(std::make_unique<TfRecordShard>(*std::move(shard)));
  }
  const auto hung = Dataset::Create("hung", std::move(shards));
  ASSERT_THAT(hung, IsOk());
  const auto zip =
      Dataset::Zip({{OpenTestDataset(TestShards({32}), "healthy"), ""}, {*hung, "h/"}});
  ASSERT_THAT(zip, IsOk());
  const auto plan = FeedPlan::Create(
      SpecFromText("zip { dataset: 'healthy' } zip { dataset: 'hung' prefix: 'h/' } "
                   "global_batch: 32 outputs { name: 'path' feature: 'path' shape: 3 "
                   "dtype: FLOAT32 }"),
      *zip);
  ASSERT_THAT(plan, IsOk());
  gate->Shut();
  StepEngine engine({.threads = 1, .max_threads = 2, .read_timeout = kReadTimeout});
  EXPECT_THAT(Drain(engine, *plan),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("dataset 'hung', shard 'hung1'")));
  gate->Open();
}

TEST(SlowStorageTest, ACancelledStreamKeepsItsMemoryUntilItsHungReadReturns) {
  const auto gate = std::make_shared<Gate>();
  const auto plan = PlanOver(OpenGated("hung", gate));
  gate->Shut();
  StepEngine engine({.threads = 1, .read_timeout = kReadTimeout});
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, kEpoch);
  ASSERT_THAT(stream, IsOk());
  ASSERT_TRUE(WaitUntil([&] { return engine.GetStats().threads_stuck > 0; }));
  stream->reset();
  ASSERT_TRUE(WaitUntil([&] { return engine.GetStats().reads_timed_out > 0; }));
  EXPECT_GT(engine.GetStats().memory_used_bytes, 0);
  gate->Open();
  EXPECT_TRUE(WaitUntil([&] { return engine.GetStats().memory_used_bytes == 0; }));
}

}  // namespace
}  // namespace systole
