// Feeds of shards in memory: their content does not depend on the store, and shards that are
// replaced while they are served are noticed.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/engine/step_engine.h"
#include "core/storage/memory/memory_store.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/compression/compressed_bytes.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kNumbers[] =
    "shuffle { mode: GLOBAL } global_batch: 6 num_cores: 2 epochs: 2 tail: PAD on_corrupt: MASK ";

// The folder of the running test, with the '/' at its end.
std::string Folder() {
  return absl::StrCat("mem://", testing::UnitTest::GetInstance()->current_test_info()->name(), "/");
}

void Put(const std::string& name, std::string bytes) {
  ASSERT_THAT(MemoryStore::OfProcess().Put(Folder() + name, std::move(bytes)), IsOk());
}

void PutShards(const std::vector<std::string>& shards) {
  for (size_t i = 0; i < shards.size(); ++i) {
    Put(absl::StrCat("shard-", i, ".tfrecord"), shards[i]);
  }
}

std::shared_ptr<Dataset> OpenStoredDataset(const ShardOptions& options = {}) {
  absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Open("test", {Folder() + "shard-*.tfrecord"}, options);
  EXPECT_THAT(dataset, IsOk());
  return *dataset;
}

std::shared_ptr<const FeedPlan> MakePlan(const std::shared_ptr<Dataset>& dataset,
                                         const std::string& numbers = kNumbers) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText(absl::StrCat("dataset: 'test' seed: 3 ", numbers, AllOutputs())), dataset);
  EXPECT_THAT(plan, IsOk());
  return *plan;
}

std::vector<std::string> Digests(const std::shared_ptr<Dataset>& dataset) {
  const std::shared_ptr<const FeedPlan> plan = MakePlan(dataset);
  StepEngine engine({.threads = 2});
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(plan, {.count = 1000, .core_end = plan->num_cores()});
  EXPECT_THAT(stream, IsOk());
  std::vector<std::string> digests;
  while (true) {
    StepStream::Result slice = (*stream)->Next();
    EXPECT_THAT(slice, IsOk());
    if (!slice.ok() || !slice->has_value()) return digests;
    digests.push_back(SliceDigest((**slice)->layout(), (**slice)->data()));
  }
}

TEST(StoredFeedTest, StoredShardsHaveTheBytesDamageAndFingerprintOfFiles) {
  std::vector<std::string> shards = TestShards({9, 0, 11});
  shards[2] = WithFlippedBit(std::move(shards[2]), 8 * shards[2].size() / 2);
  const TempFolder folder;
  for (size_t i = 0; i < shards.size(); ++i) {
    folder.Write(absl::StrCat("shard-", i, ".tfrecord"), shards[i]);
  }
  const absl::StatusOr<std::shared_ptr<Dataset>> files = Dataset::Open("test", {folder / "*"});
  ASSERT_THAT(files, IsOk());
  PutShards(shards);
  for (const char* which : {"scanned", "by its index"}) {
    SCOPED_TRACE(which);
    const std::shared_ptr<Dataset> stored = OpenStoredDataset();
    EXPECT_EQ(stored->fingerprint(), (*files)->fingerprint());
    EXPECT_EQ(Digests(stored), Digests(*files));
    EXPECT_EQ(stored->damage().masked_examples(), 2);
  }
}

TEST(StoredFeedTest, AStoredIndexIsTrustedOnlyForItsStateOfTheShard) {
  PutShards(TestShards({9}));
  const std::string index = Folder() + "shard-0.tfrecord.idx";
  const uint64_t fingerprint = OpenStoredDataset()->fingerprint();
  absl::StatusOr<std::string> hash = GetStored(index + ".hash", 1000);
  ASSERT_THAT(hash, IsOk());
  hash->replace(hash->size() - 17, 16, "0123456789abcdef");
  ASSERT_THAT(PutStored(index + ".hash", *hash), IsOk());
  EXPECT_NE(OpenStoredDataset()->fingerprint(), fingerprint);  // The dataset trusts the hash file.
  PutShards(TestShards({9}));
  const std::shared_ptr<Dataset> again = OpenStoredDataset();
  EXPECT_EQ(again->fingerprint(), fingerprint);
  EXPECT_THAT(again->shards()[0]->note(), HasSubstr("another state of the shard"));
  EXPECT_EQ(OpenStoredDataset()->shards()[0]->note(), "");
}

TEST(StoredFeedTest, AnIndexFolderMayLieInAnotherStore) {
  const TempFolder folder;
  PutShards(TestShards({9}));
  const uint64_t fingerprint = OpenStoredDataset({.index_dir = folder.path()})->fingerprint();
  EXPECT_EQ(folder.List().size(), 2u);
  EXPECT_THAT(StatStored(Folder() + "shard-0.tfrecord.idx"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("shard-0.tfrecord.idx")));
  const std::shared_ptr<Dataset> again = OpenStoredDataset({.index_dir = folder.path()});
  EXPECT_EQ(again->fingerprint(), fingerprint);
  EXPECT_EQ(again->shards()[0]->note(), "");
}

TEST(StoredFeedTest, CompressedShardsKeepTheirRestartPointsInTheStore) {
  const std::vector<std::string> shards = TestShards({20});
  PutShards(shards);
  const std::vector<std::string> plain = Digests(OpenStoredDataset());
  Put("shard-0.tfrecord", Deflate(shards[0], kGzipStream));
  for (const char* which : {"scanned", "by its restart points"}) {
    SCOPED_TRACE(which);
    EXPECT_EQ(Digests(OpenStoredDataset()), plain);
    EXPECT_THAT(StatStored(Folder() + "shard-0.tfrecord.idx.restart"), IsOk());
  }
  EXPECT_EQ(OpenStoredDataset()->shards()[0]->note(), "");
}

TEST(StoredFeedTest, AManifestInTheStoreRevealsAMissingShard) {
  PutShards(TestShards({3}));
  Put("x.manifest", "shards { name: 'shard-1.tfrecord' records: 2 bytes: 5 }");
  EXPECT_THAT(Dataset::Open("test", {Folder() + "shard-*.tfrecord"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"shard-1.tfrecord\" is missing")));
  EXPECT_THAT(Dataset::Open("test", {Folder() + "shard-0.tfrecord"}), IsOk());
}

TEST(StoredFeedTest, ReplacingAServedShardEndsTheStreamNamingTheShard) {
  PutShards(TestShards({50}));
  const std::shared_ptr<const FeedPlan> plan =
      MakePlan(OpenStoredDataset(), "global_batch: 1 num_cores: 1 on_corrupt: MASK ");
  StepEngine engine({.threads = 2});
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, {.count = 1'000'000});
  ASSERT_THAT(stream, IsOk());
  ASSERT_THAT((*stream)->Next(), IsOk());
  PutShards(TestShards({50}));
  StepStream::Result slice = (*stream)->Next();
  while (slice.ok() && slice->has_value()) slice = (*stream)->Next();
  EXPECT_THAT(slice, StatusIs(absl::StatusCode::kFailedPrecondition,
                              AllOf(HasSubstr("shard-0.tfrecord"), HasSubstr("was replaced"),
                                    Not(HasSubstr("mem://")))));
}

}  // namespace
}  // namespace systole
