// Tests feeds of shards in a bucket. The shards' folder has an index, so most shards are opened
// only when a feed first reads them.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/batch/slice_layout.h"
#include "core/concurrency/mutex.h"
#include "core/dataset/dataset.h"
#include "core/engine/step_engine.h"
#include "core/plan/feed_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kShards = 24;

StubBucket& Bucket() { return UnsignedBucketOfProcess(); }

// The key of a shard of the running test.
std::string KeyOf(int shard) {
  return absl::StrFormat("%s/shard-%05d",
                         testing::UnitTest::GetInstance()->current_test_info()->name(), shard);
}

class DeferredFeedTest : public testing::Test {
 protected:
  DeferredFeedTest() : shards_(TestShards(std::vector<int>(kShards, 3))) {
    for (int i = 0; i < kShards; ++i) Bucket().Put(KeyOf(i), shards_[static_cast<size_t>(i)]);
  }
  ~DeferredFeedTest() override { Bucket().SetFault(nullptr); }

  std::shared_ptr<Dataset> Open() const {
    absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Open(
        "test",
        {absl::StrCat(Bucket().Name(KeyOf(0)).substr(0, Bucket().Name(KeyOf(0)).size() - 5), "*")},
        {.index_dir = indexes_.path()});
    EXPECT_THAT(dataset, IsOk());
    return *dataset;
  }

  int Unread(const Dataset& dataset) const {
    int unread = 0;
    for (const auto& shard : dataset.shards()) unread += shard->unread_index() != nullptr;
    return unread;
  }

  // Opens a dataset most of whose shards will be opened only when a feed reads them.
  std::shared_ptr<Dataset> OpenDeferred() const {
    const std::shared_ptr<Dataset> first = Open();
    EXPECT_EQ(Unread(*first), 0);
    std::shared_ptr<Dataset> deferred = Open();
    EXPECT_GE(Unread(*deferred), kShards / 2);
    EXPECT_EQ(deferred->fingerprint(), first->fingerprint());
    return deferred;
  }

  const std::vector<std::string> shards_;
  const TempFolder indexes_;
};

std::shared_ptr<const FeedPlan> PlanOf(const std::shared_ptr<Dataset>& dataset,
                                       const std::string& text) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText(absl::StrCat("dataset: '", dataset->name(),
                                "' seed: 3 global_batch: 8 num_cores: 2 tail: PAD ", text)),
      dataset);
  EXPECT_THAT(plan, IsOk());
  return *plan;
}

// The digests of all slices of a feed, or the error that ends the feed.
absl::StatusOr<std::vector<std::string>> Digests(StepEngine& engine,
                                                 const std::shared_ptr<const FeedPlan>& plan) {
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(plan, {.count = 1000, .core_end = plan->num_cores()});
  EXPECT_THAT(stream, IsOk());
  std::vector<std::string> digests;
  while (true) {
    StepStream::Result slice = (*stream)->Next();
    if (!slice.ok()) return slice.status();
    if (!slice->has_value()) return digests;
    digests.push_back(SliceDigest((**slice)->layout(), (**slice)->data()));
  }
}

constexpr char kLabel[] = "epochs: 1 outputs { name: 'label' feature: 'label' dtype: INT64 }";

TEST_F(DeferredFeedTest, DeferredShardsGiveTheSameBytesAsOpenShardsInEveryOrder) {
  const std::shared_ptr<Dataset> local = OpenTestDataset(shards_);
  OpenDeferred();
  for (const std::string order :
       {"", "shuffle { mode: GLOBAL }",
        "shuffle { mode: WINDOW block_records: 5 window_records: 40 }",
        "shuffle { mode: GLOBAL } select { shard { count: 2 index: 1 } }"}) {
    for (const int64_t budget : {int64_t{1}, int64_t{0}}) {
      const std::string text = absl::StrCat(order, " epochs: 2 ", AllOutputs());
      StepEngine engine({.threads = 2, .reads = 3, .read_budget_bytes = budget});
      const auto want = Digests(engine, PlanOf(local, text));
      ASSERT_THAT(want, IsOk());
      const std::shared_ptr<Dataset> deferred = Open();
      const auto got = Digests(engine, PlanOf(deferred, text));
      ASSERT_THAT(got, IsOk());
      EXPECT_EQ(*got, *want) << order << " budget " << budget;
    }
  }
}

TEST_F(DeferredFeedTest, AMissingIndexIsRebuiltWhenTheShardIsRead) {
  const std::shared_ptr<Dataset> local = OpenTestDataset(shards_);
  const std::shared_ptr<Dataset> deferred = OpenDeferred();
  for (const std::string& name : indexes_.List()) {
    if (absl::StartsWith(name, "shard-0001")) std::filesystem::remove(indexes_ / name);
  }
  StepEngine engine({.threads = 2, .reads = 3});
  const auto got = Digests(engine, PlanOf(deferred, kLabel));
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(*got, *Digests(engine, PlanOf(local, kLabel)));
  EXPECT_EQ(Unread(*deferred), 0);
}

TEST_F(DeferredFeedTest, DamageUnknownToTheIndexIsMaskedAsInOpenShards) {
  // The damage is in the payload of a record. The scan that makes an index does not read payloads.
  Bucket().Put(KeyOf(10), WithFlippedBit(shards_[10], shards_[10].size() * 4));
  const std::shared_ptr<Dataset> open = Open();
  const std::shared_ptr<Dataset> deferred = Open();
  ASSERT_NE(deferred->shards()[10]->unread_index(), nullptr);
  StepEngine engine({.threads = 2, .reads = 3});
  const std::string masks = absl::StrCat("on_corrupt: MASK ", kLabel);
  const auto want = Digests(engine, PlanOf(open, masks));
  ASSERT_THAT(want, IsOk());
  EXPECT_EQ(*Digests(engine, PlanOf(deferred, masks)), *want);
  EXPECT_EQ(open->damage().masked_examples(), 1);
  ASSERT_EQ(deferred->damage().masked_examples(), 1);
  EXPECT_EQ(deferred->damage().entries()[0].offset, open->damage().entries()[0].offset);
  EXPECT_THAT(Digests(engine, PlanOf(Open(), kLabel)).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("shard-00010")));
}

TEST_F(DeferredFeedTest, AShardThatIsReplacedAfterTheStartEndsTheFeedAndIsNotMasked) {
  const std::shared_ptr<Dataset> deferred = OpenDeferred();
  Bucket().Put(KeyOf(10), shards_[11]);
  StepEngine engine({.threads = 2, .reads = 3});
  EXPECT_THAT(Digests(engine, PlanOf(deferred, absl::StrCat("on_corrupt: MASK ", kLabel))).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("shard-00010"), HasSubstr("was replaced"))));
}

// The index of shard 10 is gone. For a while the bucket refuses all reads of the shard, so the
// index cannot be made again.
TEST_F(DeferredFeedTest, AnIndexThatCannotBeRebuiltEndsTheFeedAndTheNextFeedRetries) {
  const std::shared_ptr<Dataset> deferred = OpenDeferred();
  for (const std::string& name : indexes_.List()) {
    if (absl::StartsWith(name, "shard-00010")) std::filesystem::remove(indexes_ / name);
  }
  Bucket().SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (!absl::StrContains(request.target, "shard-00010")) return std::nullopt;
    return Bodiless(request, RefuseInXml(403, "AccessDenied"));
  });
  StepEngine engine({.threads = 2, .reads = 3});
  const std::string masks = absl::StrCat("on_corrupt: MASK ", kLabel);
  EXPECT_THAT(Digests(engine, PlanOf(deferred, masks)).status(),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("shard-00010")));
  Bucket().SetFault(nullptr);
  // A read of the first feed may still be under way. A feed that needs the same bytes waits for
  // that read, and gets its error.
  EXPECT_TRUE(WaitUntil([&] { return Digests(engine, PlanOf(deferred, masks)).ok(); }));
}

// The indexes of the shards are gone, and the bucket holds back all its answers. Meanwhile the only
// thread that computes must serve another feed.
TEST_F(DeferredFeedTest, WaitingForAnIndexBlocksNoComputeThread) {
  const std::shared_ptr<Dataset> local = OpenTestDataset(shards_, "local");
  const std::shared_ptr<Dataset> deferred = OpenDeferred();
  for (const std::string& name : indexes_.List()) std::filesystem::remove(indexes_ / name);
  // A shared_ptr holds the gate, because a thread of the stub server may use it after the test has
  // ended.
  struct Gate {
    Mutex mu;
    CondVar changed;
    bool asked ABSL_GUARDED_BY(mu) = false;
    bool open ABSL_GUARDED_BY(mu) = false;
  };
  const auto gate = std::make_shared<Gate>();
  Bucket().SetFault([gate](const StubRequest& /*request*/) -> std::optional<StubAnswer> {
    MutexLock lock(gate->mu);
    gate->asked = true;
    gate->changed.SignalAll();
    while (!gate->open) gate->changed.Wait(gate->mu);
    return std::nullopt;
  });
  StepEngine engine({.threads = 1, .reads = 3});
  const std::shared_ptr<const FeedPlan> plan = PlanOf(deferred, kLabel);
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(plan, {.count = 1000, .core_end = plan->num_cores()});
  ASSERT_THAT(stream, IsOk());
  {
    MutexLock lock(gate->mu);
    while (!gate->asked) {
      ASSERT_TRUE(gate->changed.WaitFor(gate->mu, absl::FromChrono(kLongestWait)));
    }
  }
  EXPECT_THAT(Digests(engine, PlanOf(local, kLabel)), IsOk());
  {
    MutexLock lock(gate->mu);
    gate->open = true;
    gate->changed.SignalAll();
  }
  EXPECT_THAT((*stream)->Next(), IsOk());
}

}  // namespace
}  // namespace systole
