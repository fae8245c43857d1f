// Tests that a feed whose outputs use a cache has the same bytes as a feed without a cache, and
// does less work.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/batch/slice_layout.h"
#include "core/cache/value_cache.h"
#include "core/engine/step_engine.h"
#include "core/example/example_builder.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/plan/feed_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr int kRecords = 24;
constexpr int kOutputs = 4;  // The outputs of SpecText() that use the cache.

// A spec with four outputs that use the cache: an image with random transforms, an image that is
// resized before the cache keeps it, an image that the interpreter of transforms makes
// (core/operations/program.h), and raw bytes. PlanOf() replaces CACHE by the `cache` field.
std::string SpecText(const std::string& more = "") {
  return absl::StrCat(
      "dataset: 'test' seed: 3 shuffle { mode: GLOBAL } global_batch: 6 "
      "num_cores: 2 epochs: 3 ",
      more, R"pb(
        outputs {
          name: "random"
          feature: "image" CACHE
          transforms { decode_jpeg {} }
          transforms { random_resized_crop { height: 16 width: 16 } }
          transforms { random_flip {} }
          transforms { normalize { mean: 120 stddev: 64 } }
          dtype: BFLOAT16
        }
        outputs {
          name: "grey"
          feature: "image" CACHE
          transforms { decode_jpeg { channels: 1 } }
          transforms { resize { height: 12 width: 14 } }
          transforms { round_to_uint8 {} }
          transforms { random_crop { height: 8 width: 8 } }
          dtype: UINT8
          layout: NCHW
        }
        outputs {
          name: "other"
          feature: "image" CACHE
          transforms { decode_image {} }
          transforms { central_crop { fraction: 0.5 } }
          transforms { resize { height: 6 width: 6 method: BICUBIC antialias: true } }
          dtype: FLOAT32
        }
        outputs {
          name: "raw"
          feature: "raw" CACHE
          shape: [ 2, 2, 3 ]
          transforms { decode_raw {} }
          transforms { grayscale {} }
          transforms { brightness { delta_min: -9 delta_max: 9 } }
          dtype: FLOAT32
        }
        outputs { name: "id" feature: "record_id" dtype: INT64 }
      )pb");
}

std::shared_ptr<const FeedPlan> PlanOf(const std::string& text, const std::string& cache,
                                       const std::shared_ptr<Dataset>& dataset) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
      FeedPlan::Create(SpecFromText(absl::StrReplaceAll(text, {{"CACHE", cache}})), dataset);
  EXPECT_THAT(plan, IsOk());
  return *plan;
}

constexpr char kMemory[] = "cache: MEMORY";
constexpr char kDisk[] = "cache: DISK";

std::shared_ptr<ValueCache> MakeCache(const ValueCacheOptions& options) {
  absl::StatusOr<std::unique_ptr<ValueCache>> cache = ValueCache::Create(options);
  EXPECT_THAT(cache, IsOk());
  return *std::move(cache);
}

std::vector<std::string> Digests(const std::shared_ptr<const FeedPlan>& plan,
                                 std::shared_ptr<ValueCache> cache, int threads = 1) {
  StepEngine engine({.threads = threads, .max_threads = threads});
  const auto stream =
      engine.Open(plan, {.count = 1000, .core_end = plan->num_cores()}, {}, "", std::move(cache));
  EXPECT_THAT(stream, IsOk());
  std::vector<std::string> digests;
  while (true) {
    const StepStream::Result slice = (*stream)->Next();
    if (!slice.ok()) digests.push_back(slice.status().ToString());
    if (!slice.ok() || !slice->has_value()) return digests;
    digests.push_back(SliceDigest((**slice)->layout(), (**slice)->data()));
  }
}

TEST(CachedFeedTest, ASecondEpochDecodesNothingAndTheBytesAreTheSame) {
  const auto dataset = OpenTestDataset(TestShards({10, 14}));
  const auto plain = PlanOf(SpecText(), "", dataset);
  const auto cached = PlanOf(SpecText(), kMemory, dataset);
  EXPECT_EQ(cached->fingerprint(), plain->fingerprint());
  const std::vector<std::string> wanted = Digests(plain, nullptr);
  EXPECT_EQ(Digests(cached, nullptr), wanted);
  const std::shared_ptr<ValueCache> cache = MakeCache({.memory_bytes = 64 << 20});
  EXPECT_EQ(Digests(cached, cache), wanted);
  EXPECT_EQ(cache->stats().misses, kOutputs * kRecords);
  EXPECT_EQ(cache->stats().memory_hits, 2 * kOutputs * kRecords);
  // A feed with another seed draws other random numbers. But its outputs begin with the same
  // transforms, so it finds all values in the cache.
  const auto other =
      PlanOf(absl::StrReplaceAll(SpecText(), {{"seed: 3", "seed: 4"}}), kMemory, dataset);
  EXPECT_NE(Digests(other, cache), wanted);
  EXPECT_EQ(cache->stats().misses, kOutputs * kRecords);
}

TEST(CachedFeedTest, ACacheThatIsTooSmallChangesNoByte) {
  const auto dataset = OpenTestDataset(TestShards({24}));
  const std::vector<std::string> wanted = Digests(PlanOf(SpecText(), "", dataset), nullptr);
  for (const int64_t bytes : {0, 1, 40'000, 150'000}) {
    const std::shared_ptr<ValueCache> cache = MakeCache({.memory_bytes = bytes});
    EXPECT_EQ(Digests(PlanOf(SpecText(), kMemory, dataset), cache, 3), wanted) << bytes;
    EXPECT_LE(cache->stats().memory_bytes, bytes);
  }
}

TEST(CachedFeedTest, ValuesOnDiskAreFoundByANewCache) {
  const TempFolder folder;
  const auto dataset = OpenTestDataset(TestShards({24}));
  const std::vector<std::string> wanted = Digests(PlanOf(SpecText(), "", dataset), nullptr);
  const auto plan = PlanOf(SpecText(), kDisk, dataset);
  const ValueCacheOptions options = {.disk_folder = folder / "kept", .disk_bytes = 64 << 20};
  EXPECT_EQ(Digests(plan, MakeCache(options)), wanted);
  const std::shared_ptr<ValueCache> again = MakeCache(options);
  EXPECT_EQ(Digests(plan, again), wanted);
  EXPECT_EQ(again->stats().misses, 0);
  EXPECT_EQ(again->stats().disk_hits, 3 * kOutputs * kRecords);
}

TEST(CachedFeedTest, ADifferentShardWithTheSameNameHasNoCacheHits) {
  const std::shared_ptr<ValueCache> cache = MakeCache({.memory_bytes = 64 << 20});
  Digests(PlanOf(SpecText(), kMemory, OpenTestDataset(TestShards({24}))), cache);
  ShardBuilder builder;
  for (int64_t i = 0; i < kRecords; ++i) builder.Add(TestRecord(i + 1));
  const auto other = OpenTestDataset({builder.Build()});
  EXPECT_EQ(Digests(PlanOf(SpecText(), kMemory, other), cache),
            Digests(PlanOf(SpecText(), "", other), nullptr));
  EXPECT_EQ(cache->stats().misses, 2 * kOutputs * kRecords);
}

// Makes a shard in which some images are cut off. Others are damaged in their last rows, which most
// crops do not need.
std::string DamagedShard() {
  ShardBuilder builder;
  for (int64_t i = 0; i < kRecords; ++i) {
    std::string jpeg = TestJpeg(i);
    if (i % 5 == 1) jpeg.resize(jpeg.size() * 9 / 10);
    if (i % 5 == 2) jpeg[jpeg.size() - 40] ^= 0x55;
    if (i % 5 == 3) jpeg.resize(20);
    builder.Add(
        ExampleBuilder().AddBytes("image", jpeg).AddBytes("raw", "twelve bytes").Serialize());
  }
  return builder.Build();
}

TEST(CachedFeedTest, TheSameRecordsAreDamagedWithAndWithoutACache) {
  const auto dataset = OpenTestDataset({DamagedShard()});
  for (const std::string policy : {"on_corrupt: MASK ", "", "on_corrupt: MASK warnings"}) {
    std::string text = SpecText(policy);
    if (policy == "on_corrupt: MASK warnings") {
      text = absl::StrReplaceAll(SpecText("on_corrupt: MASK "),
                                 {{"decode_jpeg {}", "decode_jpeg { allow_warnings: true }"}});
    }
    const std::vector<std::string> wanted = Digests(PlanOf(text, "", dataset), nullptr, 1);
    const std::shared_ptr<ValueCache> cache = MakeCache({.memory_bytes = 64 << 20});
    EXPECT_EQ(Digests(PlanOf(text, kMemory, dataset), cache, 1), wanted) << policy;
    EXPECT_EQ(Digests(PlanOf(text, kMemory, dataset), cache, 1), wanted) << policy;
  }
}

TEST(CachedFeedTest, DefaultValuesAreNotCached) {
  ShardBuilder builder;
  for (int64_t i = 0; i < 4; ++i) builder.Add(ExampleBuilder().AddInt64s("label", {i}).Serialize());
  const auto dataset = OpenTestDataset({builder.Build()});
  const std::shared_ptr<ValueCache> cache = MakeCache({.memory_bytes = 64 << 20});
  const auto digests = [&](int64_t image, const std::string& field) {
    return Digests(
        PlanOf(
            absl::StrCat("dataset: 'test' global_batch: 2 num_cores: 1 epochs: 1 outputs { name: "
                         "'image' feature: 'image' CACHE transforms { decode_jpeg {} } "
                         "transforms { random_crop { height: 8 width: 8 } } "
                         "default_value { bytes: '",
                         absl::CEscape(TestJpeg(image)), "' } }"),
            field, dataset),
        cache);
  };
  EXPECT_EQ(digests(0, kMemory), digests(0, ""));
  EXPECT_EQ(digests(1, kMemory), digests(1, ""));
  EXPECT_NE(digests(0, kMemory), digests(1, kMemory));
  EXPECT_EQ(cache->stats().misses, 0);
  EXPECT_EQ(cache->stats().memory_bytes, 0);
}

// A spec without a random transform. So the cache keeps finished examples if it has room for them.
std::string FinishedText(const std::string& dtype, const std::string& layout) {
  return absl::StrCat(
      "dataset: 'test' shuffle { mode: GLOBAL } seed: 3 global_batch: 8 num_cores: 1 epochs: 3 "
      "outputs { name: 'image' feature: 'image' CACHE transforms { decode_jpeg {} } "
      "transforms { resize { height: 10 width: 12 } } transforms { normalize { mean: 3 } } dtype: ",
      dtype, " layout: ", layout, " }");
}

TEST(CachedFeedTest, FinishedExamplesAreCachedPerDtypeAndSharedByAllLayouts) {
  const auto dataset = OpenTestDataset(TestShards({24}));
  // All feeds share one cache. An example that was kept for one dtype is not used for another
  // dtype.
  const std::shared_ptr<ValueCache> cache = MakeCache({.memory_bytes = 64 << 20});
  int64_t types = 0;
  for (const std::string dtype : {"UINT8", "FLOAT32", "BFLOAT16", "FLOAT16"}) {
    ++types;
    // The cache keeps an example before its values are put into the order of the layout. So feeds
    // of all layouts share it.
    for (const std::string layout : {"NHWC", "NCHW", "HWCN"}) {
      const std::string text = FinishedText(dtype, layout);
      const auto plan = PlanOf(text, kMemory, dataset);
      EXPECT_TRUE(plan->outputs()[0].cache->forms.back().value.finished);
      EXPECT_EQ(Digests(plan, cache), Digests(PlanOf(text, "", dataset), nullptr))
          << dtype << " " << layout;
      EXPECT_EQ(cache->stats().misses, types * kRecords);
    }
  }
}

TEST(CachedFeedTest, LessRoomKeepsSmallerImagesInsteadOfSomeFinishedExamples) {
  const auto dataset = OpenTestDataset(TestShards({24}));
  // A finished example takes 86,400 bytes, and the largest decoded image 11,340 bytes.
  const std::string text = absl::StrReplaceAll(FinishedText("FLOAT32", "NHWC"),
                                               {{"height: 10 width: 12", "height: 80 width: 90"}});
  const std::vector<std::string> wanted = Digests(PlanOf(text, "", dataset), nullptr);
  const auto plan = PlanOf(text, kMemory, dataset);
  int64_t bytes_before = 0;
  for (const int64_t bytes : {240'000, 4'000'000}) {
    const std::shared_ptr<ValueCache> cache = MakeCache({.memory_bytes = bytes});
    EXPECT_EQ(Digests(plan, cache), wanted) << bytes;
    // Only the first epoch misses. In both later epochs the cache has a value of each record.
    EXPECT_EQ(cache->stats().misses, kRecords);
    EXPECT_EQ(cache->stats().memory_hits, 2 * kRecords);
    EXPECT_GT(cache->stats().memory_bytes, 8 * bytes_before);
    bytes_before = cache->stats().memory_bytes;
  }
}

TEST(CachedFeedTest, FinishedExamplesOnDiskServeANewCacheForTheirDtypeOnly) {
  const TempFolder folder;
  const auto dataset = OpenTestDataset(TestShards({24}));
  const ValueCacheOptions options = {.disk_folder = folder / "kept", .disk_bytes = 64 << 20};
  const std::string floats = FinishedText("FLOAT32", "NHWC");
  const std::string halves = FinishedText("BFLOAT16", "NHWC");
  const std::vector<std::string> wanted = Digests(PlanOf(floats, "", dataset), nullptr);
  EXPECT_EQ(Digests(PlanOf(floats, kDisk, dataset), MakeCache(options)), wanted);
  const std::shared_ptr<ValueCache> again = MakeCache(options);
  EXPECT_EQ(Digests(PlanOf(floats, kDisk, dataset), again), wanted);
  EXPECT_EQ(again->stats().misses, 0);
  EXPECT_EQ(Digests(PlanOf(halves, kDisk, dataset), again),
            Digests(PlanOf(halves, "", dataset), nullptr));
  EXPECT_EQ(again->stats().misses, kRecords);
}

TEST(CachedFeedTest, FloatImagesAreCachedBeforeARandomTransform) {
  const auto dataset = OpenTestDataset(TestShards({24}));
  const std::string text =
      "dataset: 'test' seed: 3 global_batch: 6 num_cores: 1 epochs: 3 outputs { name: 'image' "
      "feature: 'image' CACHE transforms { decode_jpeg {} } transforms { resize { height: 20 "
      "width: 20 antialias: true preserve_aspect_ratio: KEEPS } } transforms { normalize { mean: 9 "
      "stddev: -2 } } transforms { random_crop { height: 8 width: 8 } } dtype: FLOAT32 }";
  for (const std::string keeps : {"false", "true"}) {
    const std::string one = absl::StrReplaceAll(text, {{"KEEPS", keeps}});
    const auto plan = PlanOf(one, kMemory, dataset);
    EXPECT_EQ(plan->outputs()[0].cache->forms.back().value.type.element, ElementType::kFloat32);
    const std::shared_ptr<ValueCache> cache = MakeCache({.memory_bytes = 64 << 20});
    EXPECT_EQ(Digests(plan, cache), Digests(PlanOf(one, "", dataset), nullptr)) << keeps;
    EXPECT_EQ(cache->stats().memory_hits, 2 * kRecords);
  }
}

// The cache may have room for the cropped image, but not for the decoded image that is cropped.
TEST(CachedFeedTest, ACropIsCachedEvenIfTheDecodedImageDoesNotFit) {
  const auto dataset = OpenTestDataset(TestShards({24}));
  const std::string text =
      "dataset: 'test' global_batch: 6 num_cores: 1 epochs: 2 outputs { name: 'image' feature: "
      "'image' CACHE transforms { decode_jpeg {} } transforms { crop { height: 8 width: 8 } } "
      "transforms { random_flip {} } dtype: UINT8 }";
  // A single value may take at most an eighth of the cache. An eighth of this cache is 2,500 bytes,
  // too few for an image of 30 x 40 pixels.
  const std::shared_ptr<ValueCache> cache = MakeCache({.memory_bytes = 20'000});
  EXPECT_EQ(Digests(PlanOf(text, kMemory, dataset), cache),
            Digests(PlanOf(text, "", dataset), nullptr));
  EXPECT_GT(cache->stats().memory_hits, 0);
}

// The image has an edge that is longer than kMaxImageEdge, so no operation takes the whole image,
// and the cache cannot keep it. But a crop can be decoded out of the image.
TEST(CachedFeedTest, AnImageThatIsTooLongToBeKeptIsMadeAsWithoutACache) {
  constexpr int kLong = 17'000;
  const absl::StatusOr<std::string> jpeg =
      EncodeJpeg(std::vector<uint8_t>(kLong * 9 * 3, 77), kLong, 9, 3, {.quality = 90});
  ASSERT_THAT(jpeg, IsOk());
  ShardBuilder builder;
  for (int i = 0; i < 4; ++i) {
    builder.Add(ExampleBuilder().AddBytes("image", *jpeg).Serialize());
  }
  const auto dataset = OpenTestDataset({builder.Build()});
  const std::string text =
      "dataset: 'test' global_batch: 2 num_cores: 1 epochs: 2 outputs { name: 'image' feature: "
      "'image' CACHE transforms { decode_jpeg {} } transforms { random_crop { height: 8 width: 8 } "
      "} dtype: UINT8 }";
  const std::shared_ptr<ValueCache> cache = MakeCache({.memory_bytes = 64 << 20});
  const std::vector<std::string> wanted = Digests(PlanOf(text, "", dataset), nullptr);
  EXPECT_EQ(wanted.size(), 4u);
  EXPECT_EQ(Digests(PlanOf(text, kMemory, dataset), cache), wanted);
  EXPECT_EQ(cache->stats().memory_bytes, 0);
}

}  // namespace
}  // namespace systole
