// Tests feeds of shards that are local files: which feeds read the mapped files in place, that this
// changes no byte, and what happens if a file is cut while it is served.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/cache/value_cache.h"
#include "core/engine/step_engine.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Every kind of output that is not an image.
constexpr char kPlainOutputs[] = R"pb(
  outputs {
    name: "raw"
    feature: "raw"
    transforms { decode_raw {} }
    shape: 12
    transforms { normalize { mean: 3 stddev: 64 } }
    dtype: BFLOAT16
  }
  outputs {
    name: "raw_hwcn"
    feature: "raw"
    transforms { decode_raw {} }
    shape: [ 2, 2, 3 ]
    dtype: UINT8
    layout: HWCN
  }
  outputs { name: "label" feature: "label" dtype: INT32 }
  outputs { name: "pair" feature: "pair" shape: 2 dtype: INT64 }
  outputs { name: "path" feature: "path" shape: 3 dtype: FLOAT32 }
  outputs { name: "id" feature: "record_id" dtype: INT64 }
)pb";

std::shared_ptr<const FeedPlan> MakePlan(const std::string& numbers, const std::string& outputs,
                                         const std::shared_ptr<Dataset>& dataset) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText(absl::StrCat("dataset: 'test' seed: 3 ", numbers, outputs)), dataset);
  EXPECT_THAT(plan, IsOk());
  return *plan;
}

std::shared_ptr<Dataset> OpenFiles(const TempFolder& folder,
                                   const std::vector<std::string>& shards) {
  for (size_t i = 0; i < shards.size(); ++i) {
    folder.Write(absl::StrCat("shard-", i, ".tfrecord"), shards[i]);
  }
  absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Open("test", {folder / "shard-*.tfrecord"});
  EXPECT_THAT(dataset, IsOk());
  return *dataset;
}

std::vector<std::string> Digests(const std::shared_ptr<const FeedPlan>& plan,
                                 std::shared_ptr<ValueCache> cache = nullptr) {
  StepEngine engine({.threads = 2});
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(plan, {.count = 1000, .core_end = plan->num_cores()}, {}, "", std::move(cache));
  EXPECT_THAT(stream, IsOk());
  std::vector<std::string> digests;
  while (true) {
    StepStream::Result slice = (*stream)->Next();
    EXPECT_THAT(slice, IsOk());
    if (!slice.ok() || !slice->has_value()) return digests;
    digests.push_back(SliceDigest((**slice)->layout(), (**slice)->data()));
  }
}

TEST(MappedShardsTest, AFeedOfMappedShardsEqualsAFeedOfCopies) {
  const TempFolder folder;
  std::vector<std::string> shards = TestShards({9, 0, 11});
  shards[2] = WithFlippedBit(std::move(shards[2]), 8 * shards[2].size() / 2);  // Damages a record.
  const std::string numbers =
      "shuffle { mode: GLOBAL } global_batch: 6 num_cores: 2 epochs: 2 tail: PAD on_corrupt: MASK ";
  const std::shared_ptr<Dataset> files = OpenFiles(folder, shards);
  const std::vector<std::string> digests = Digests(MakePlan(numbers, kPlainOutputs, files));
  EXPECT_EQ(digests.size(), 2u * 2u * 4u);  // 2 epochs, 2 cores and ceil(20 / 6) steps.
  EXPECT_EQ(digests, Digests(MakePlan(numbers, kPlainOutputs, OpenTestDataset(shards))));
  EXPECT_EQ(files->damage().masked_examples(), 2);  // Once in each epoch.
  EXPECT_THAT(ReadWholeFile("/proc/self/maps"), HasSubstr(folder / "shard-2.tfrecord"));
}

TEST(MappedShardsTest, LargeTasksOverSeveralMappedShardsEqualThoseOfCopies) {
  const TempFolder folder;
  std::vector<std::string> shards = TestShards({30, 1, 0, 40, 17});
  shards[3] = WithFlippedBit(std::move(shards[3]), 8 * shards[3].size() / 2);
  for (const char* mode : {"NONE", "GLOBAL"}) {
    const std::string numbers =
        absl::StrCat("shuffle { mode: ", mode,
                     " } global_batch: 50 num_cores: 1 epochs: 2 tail: PAD on_corrupt: MASK ");
    const std::shared_ptr<Dataset> files = OpenFiles(folder, shards);
    const std::vector<std::string> digests = Digests(MakePlan(numbers, kPlainOutputs, files));
    EXPECT_EQ(digests.size(), 4u);
    EXPECT_EQ(digests, Digests(MakePlan(numbers, kPlainOutputs, OpenTestDataset(shards))));
    EXPECT_EQ(files->damage().masked_examples(), 2);
  }
}

TEST(MappedShardsTest, FeedsWithUncachedImagesDoNotMapShards) {
  const TempFolder folder;
  const std::shared_ptr<Dataset> files = OpenFiles(folder, TestShards({6}));
  EXPECT_EQ(
      Digests(MakePlan("global_batch: 3 num_cores: 1 epochs: 1 ", AllOutputs(), files)).size(), 2u);
  EXPECT_THAT(ReadWholeFile("/proc/self/maps"), Not(HasSubstr(folder.path())));
}

// The cache can keep two images of each record: the decoded image for `crop`, and the finished
// image of `whole`.
constexpr char kKeptOutputs[] = R"pb(
  outputs {
    name: "crop"
    feature: "image"
    cache: MEMORY
    transforms { decode_jpeg {} }
    transforms { random_crop { height: 8 width: 8 } }
  }
  outputs {
    name: "whole"
    feature: "image"
    cache: MEMORY
    transforms { decode_jpeg {} }
    transforms { resize { height: 9 width: 9 } }
  }
  outputs { name: "label" feature: "label" dtype: INT32 }
)pb";

TEST(MappedShardsTest, ShardsAreMappedOnceTheirImagesAreCached) {
  const TempFolder folder;
  std::vector<std::string> shards = TestShards({30, 1, 40});
  shards[2] = WithFlippedBit(std::move(shards[2]), 8 * shards[2].size() / 2);
  const std::string numbers =
      "shuffle { mode: GLOBAL } global_batch: 50 num_cores: 1 epochs: 1 tail: PAD on_corrupt: "
      "MASK ";
  const std::shared_ptr<Dataset> files = OpenFiles(folder, shards);
  const auto plan = MakePlan(numbers, kKeptOutputs, files);
  const std::vector<std::string> digests =
      Digests(MakePlan(numbers, kKeptOutputs, OpenTestDataset(shards)));
  // One cache has room for all images, the other cache only for some of them.
  for (const int64_t bytes : {10'000'000, 100'000}) {
    const std::shared_ptr<ValueCache> cache = *ValueCache::Create({.memory_bytes = bytes});
    EXPECT_EQ(Digests(plan, cache), digests);
    const bool is_first = bytes > 100'000;
    if (is_first) {
      EXPECT_THAT(ReadWholeFile("/proc/self/maps"), Not(HasSubstr(folder.path())));
    }
    EXPECT_EQ(Digests(plan, cache), digests);
    EXPECT_THAT(ReadWholeFile("/proc/self/maps"), HasSubstr(folder / "shard-0.tfrecord"));
    EXPECT_GT(cache->stats().memory_hits, 0);
  }
  EXPECT_EQ(files->damage().masked_examples(), 4);  // Once in each of the four feeds of `files`.
}

TEST(MappedShardsTest, ATruncatedShardIsDetectedThoughItsImagesAreCached) {
  const TempFolder folder;
  const std::vector<std::string> shards = TestShards({12});
  const std::string numbers = "global_batch: 4 num_cores: 1 epochs: 1 ";
  const std::shared_ptr<ValueCache> cache = *ValueCache::Create({.memory_bytes = 10'000'000});
  const std::shared_ptr<Dataset> files = OpenFiles(folder, shards);
  const auto plan = MakePlan(numbers, kKeptOutputs, files);
  Digests(plan, cache);
  std::filesystem::resize_file(folder / "shard-0.tfrecord", 100);
  StepEngine engine({.threads = 1});
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(plan, {.count = 3}, {}, "", cache);
  ASSERT_THAT(stream, IsOk());
  EXPECT_THAT((*stream)->Next(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          AllOf(HasSubstr("shard-0"), HasSubstr("was resized"))));
}

TEST(MappedShardsTest, TruncatingAServedShardEndsTheStreamNamingTheShard) {
  const TempFolder folder;
  const std::shared_ptr<Dataset> files = OpenFiles(folder, TestShards({50}));
  const auto plan =
      MakePlan("global_batch: 1 num_cores: 1 on_corrupt: MASK ", kPlainOutputs, files);
  StepEngine engine({.threads = 2});
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, {.count = 1'000'000});
  ASSERT_THAT(stream, IsOk());
  ASSERT_THAT((*stream)->Next(), IsOk());  // From now on the file is mapped.
  std::filesystem::resize_file(folder / "shard-0.tfrecord", 100);
  StepStream::Result slice = (*stream)->Next();
  while (slice.ok() && slice->has_value()) slice = (*stream)->Next();
  EXPECT_THAT(slice, StatusIs(absl::StatusCode::kFailedPrecondition,
                              AllOf(HasSubstr("shard-0.tfrecord"), HasSubstr("was resized"))));
  EXPECT_EQ(files->damage().masked_examples(), 0);  // A cut file is not masked.
}

}  // namespace
}  // namespace systole
