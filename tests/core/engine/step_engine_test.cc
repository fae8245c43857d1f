#include "core/engine/step_engine.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/engine/slice_budget.h"
#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/error_source.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::shared_ptr<const FeedPlan> MakePlan(const std::string& spec,
                                         const std::shared_ptr<Dataset>& dataset) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
      FeedPlan::Create(SpecFromText(spec), dataset);
  EXPECT_THAT(plan, IsOk());
  return *plan;
}

std::string ShuffledSpec(const std::string& more) {
  return absl::StrCat("dataset: 'test' seed: 3 shuffle { mode: GLOBAL } ", more, AllOutputs());
}

using Digests = std::map<std::pair<int64_t, int>, std::string>;  // The key is (step, core).

// Takes all slices of a stream, which must end without an error, and checks their order.
Digests Drain(StepStream& stream) {
  Digests digests;
  while (true) {
    StepStream::Result slice = stream.Next();
    EXPECT_THAT(slice, IsOk());
    if (!slice.ok() || !slice->has_value()) return digests;
    const CoreSlice& s = ***slice;
    const std::pair<int64_t, int> place(s.step(), s.core());
    EXPECT_TRUE(digests.empty() || digests.rbegin()->first < place);
    digests[place] = SliceDigest(s.layout(), s.data());
  }
}

Digests DrainAll(StepEngine& engine, const std::shared_ptr<const FeedPlan>& plan,
                 const StepRange& range) {
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, range);
  EXPECT_THAT(stream, IsOk());
  return Drain(**stream);
}

TEST(StepEngineTest, BytesDoNotDependOnThreads) {
  const auto plan = MakePlan(ShuffledSpec("global_batch: 6 num_cores: 2 epochs: 2 tail: PAD"),
                             OpenTestDataset(TestShards({9, 0, 11})));
  StepEngine one({.threads = 1, .max_threads = 1});
  StepEngine eight({.threads = 8});
  const StepRange all = {.count = 1000, .core_end = 2};
  const Digests digests = DrainAll(one, plan, all);
  EXPECT_EQ(digests.size(), 2u * 2u * 4u);  // 2 epochs, 2 cores and ceil(20 / 6) steps.
  EXPECT_EQ(DrainAll(eight, plan, all), digests);
}

TEST(StepEngineTest, StreamsOfOnePlanGetTheSameBytesAndMakeEachExampleOnce) {
  const std::string spec = ShuffledSpec("global_batch: 6 num_cores: 2 epochs: 3 ");
  const auto dataset = OpenTestDataset(TestShards({9, 0, 11}));
  const auto plan = MakePlan(spec, dataset);
  const StepRange all = {.count = 9, .core_end = 2};
  StepEngine alone({.threads = 2});
  const Digests wanted = DrainAll(alone, plan, all);
  EXPECT_EQ(alone.GetStats().examples_made, 9 * 6);

  StepEngine engine({.threads = 2});
  std::vector<std::unique_ptr<StepStream>> streams;
  for (int i = 0; i < 3; ++i) {
    absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, all);
    ASSERT_THAT(stream, IsOk());
    streams.push_back(*std::move(stream));
  }
  for (const std::unique_ptr<StepStream>& stream : streams) EXPECT_EQ(Drain(*stream), wanted);
  EXPECT_EQ(engine.GetStats().examples_made, 9 * 6);
  EXPECT_EQ(engine.GetStats().slices_shared, 2 * 9 * 2);
  streams.clear();
  EXPECT_EQ(engine.GetStats().memory_used_bytes, 0);
  // A stream that opens after the others have ended makes the examples again.
  EXPECT_EQ(DrainAll(engine, plan, all), wanted);
  EXPECT_EQ(engine.GetStats().examples_made, 2 * 9 * 6);
}

// A task sorts its records by number. So records that lie side by side in a shard are read
// together, whatever the order of the feed.
TEST(StepEngineTest, AdjacentRecordsShareOneReadAndKeepTheirSlots) {
  ShardBuilder builder;
  for (int i = 0; i < 64; ++i) builder.Add(std::string(10, static_cast<char>('0' + i)));
  auto source = std::make_unique<ErrorSource>(builder.Build());
  ErrorSource* const reads = source.get();
  absl::StatusOr<TfRecordShard> shard = TfRecordShard::Create(std::move(source));
  ASSERT_THAT(shard, IsOk());
  std::vector<std::unique_ptr<const RecordSource>> shards;
  shards.push_back(std::make_unique<TfRecordShard>(*std::move(shard)));
  absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Create("test", std::move(shards));
  ASSERT_THAT(dataset, IsOk());
  for (const char* const mode : {"NONE", "GLOBAL"}) {
    const auto plan =
        MakePlan(absl::StrCat("dataset: 'test' seed: 1 shuffle { mode: ", mode,
                              " } global_batch: 64 num_cores: 1 epochs: 1 outputs { name: 'x' "
                              "feature: 'record' shape: 10 transforms { decode_raw {} } "
                              "dtype: UINT8 }"),
                 *dataset);
    StepEngine engine({.threads = 1, .max_threads = 1});
    reads->ResetCounts();
    absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, {});
    ASSERT_THAT(stream, IsOk());
    StepStream::Result slice = (*stream)->Next();
    ASSERT_THAT(slice, IsOk());
    EXPECT_EQ(reads->num_reads(), 1) << mode;  // One read for all 64 records.
    const SliceLayout& layout = plan->layout();
    const uint8_t* const x =
        (**slice)->data() + layout.tensors()[static_cast<size_t>(layout.IndexOf("x"))].offset;
    for (int64_t slot = 0; slot < 64; ++slot) {
      EXPECT_EQ(x[slot * 10], '0' + *plan->order().PlaceOf(0, slot).record) << mode;
    }
  }
}

TEST(StepEngineTest, TheErrorOfTheLowestSlotInATaskIsReported) {
  std::string bytes;
  {
    ShardBuilder builder;
    for (int i = 0; i < 16; ++i) builder.Add(std::string(10, 'x'));
    bytes = builder.Build();
  }
  for (int record = 0; record < 16; ++record) {  // Flips a bit of each payload.
    bytes = WithFlippedBit(bytes, (static_cast<uint64_t>(record) * 26 + 12) * 8);
  }
  const auto plan = MakePlan(
      "dataset: 'test' seed: 1 shuffle { mode: GLOBAL } global_batch: 16 num_cores: 1 epochs: 1 "
      "outputs { name: 'x' feature: 'record' shape: 10 transforms { decode_raw {} } dtype: UINT8 }",
      OpenTestDataset({bytes}));
  StepEngine engine({.threads = 1, .max_threads = 1});
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, {});
  ASSERT_THAT(stream, IsOk());
  EXPECT_THAT((*stream)->Next(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr(absl::StrCat("record ", *plan->order().PlaceOf(0, 0).record,
                                              " at byte offset"))));
}

TEST(StepEngineTest, EveryStepAndCoreAloneEqualsItsPlaceInTheWholeRun) {
  const auto plan = MakePlan(ShuffledSpec("global_batch: 6 num_cores: 3 epochs: 2 tail: PAD"),
                             OpenTestDataset(TestShards({20})));
  StepEngine engine({.threads = 2});
  const Digests whole = DrainAll(engine, plan, {.count = 1000, .core_end = 3});
  for (int64_t step = 0; step < 8; ++step) {
    for (int core = 0; core < 3; ++core) {
      const Digests alone = DrainAll(
          engine, plan, {.first_step = step, .count = 1, .core_begin = core, .core_end = core + 1});
      ASSERT_EQ(alone.size(), 1u);
      EXPECT_EQ(*alone.begin(), *whole.find({step, core}));
    }
  }
}

TEST(StepEngineTest, StridedStreamsTogetherAreTheWholeRun) {
  const auto plan =
      MakePlan(ShuffledSpec("global_batch: 4 num_cores: 2"), OpenTestDataset(TestShards({30})));
  StepEngine engine({.threads = 2});
  // Takes 10 steps of an endless feed with one stream. Then takes the same steps with three
  // streams, each of which has every third step.
  const Digests whole = DrainAll(engine, plan, {.count = 10, .core_end = 2});
  Digests parts;
  for (int64_t lane = 0; lane < 3; ++lane) {
    parts.merge(
        DrainAll(engine, plan,
                 {.first_step = lane, .count = lane == 0 ? 4 : 3, .stride = 3, .core_end = 2}));
  }
  EXPECT_EQ(parts, whole);
}

TEST(StepEngineTest, BytesDoNotDependOnTheSimdTarget) {
  const auto plan = MakePlan(ShuffledSpec("global_batch: 6 num_cores: 2 epochs: 1"),
                             OpenTestDataset(TestShards({12})));
  StepEngine engine({.threads = 1, .max_threads = 1});
  const StepRange all = {.count = 1000, .core_end = 2};
  const Digests digests = DrainAll(engine, plan, all);
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    EXPECT_EQ(DrainAll(engine, plan, all), digests) << target;
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

// The values of `tensor` in the slices of all cores, in order of steps and cores.
template <typename T>
std::vector<T> Values(StepEngine& engine, const std::shared_ptr<const FeedPlan>& plan,
                      const std::string& tensor, int64_t steps) {
  std::vector<T> values;
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(plan, {.count = steps, .core_end = plan->num_cores()});
  EXPECT_THAT(stream, IsOk());
  while (true) {
    StepStream::Result slice = (*stream)->Next();
    EXPECT_THAT(slice, IsOk());
    if (!slice.ok() || !slice->has_value()) return values;
    const SliceLayout& layout = (**slice)->layout();
    const TensorView view = layout.View(layout.IndexOf(tensor), (**slice)->data());
    for (const T value : view.As<T>()) values.push_back(value);
  }
}

TEST(StepEngineTest, PadShowsEveryRecordOnceAndMarksPaddingInvalid) {
  const auto plan = MakePlan(ShuffledSpec("global_batch: 6 num_cores: 2 epochs: 1 tail: PAD"),
                             OpenTestDataset(TestShards({20})));
  StepEngine engine({.threads = 2});
  const std::vector<int64_t> ids = Values<int64_t>(engine, plan, "id", 100);
  const std::vector<uint8_t> valid = Values<uint8_t>(engine, plan, "valid", 100);
  ASSERT_EQ(ids.size(), 24u);
  std::vector<int> seen(20, 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (valid[i] == 1) ++seen[static_cast<size_t>(ids[i])];
  }
  EXPECT_THAT(seen, testing::Each(1));
  EXPECT_EQ(std::count(valid.begin(), valid.end(), 1), 20);
}

TEST(StepEngineTest, DropShowsNoRecordTwice) {
  const auto plan = MakePlan(ShuffledSpec("global_batch: 6 num_cores: 2 epochs: 1 tail: DROP"),
                             OpenTestDataset(TestShards({20})));
  StepEngine engine({.threads = 2});
  std::vector<int64_t> ids = Values<int64_t>(engine, plan, "id", 100);
  EXPECT_EQ(ids.size(), 18u);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
}

TEST(StepEngineTest, ValuesAreThoseOfTheRecords) {
  const auto plan = MakePlan(
      absl::StrCat("dataset: 'test' global_batch: 3 num_cores: 1 epochs: 1 ", AllOutputs()),
      OpenTestDataset(TestShards({7})));
  StepEngine engine({.threads = 1, .max_threads = 1});
  EXPECT_THAT(Values<int32_t>(engine, plan, "label", 9), testing::ElementsAre(0, 1, 2, 3, 4, 0));
  EXPECT_THAT(Values<int64_t>(engine, plan, "pair", 1), testing::ElementsAre(0, 0, 1, -1, 2, -2));
  EXPECT_THAT(Values<float>(engine, plan, "weight", 1), testing::ElementsAre(0, 0.25, 0.5));
  EXPECT_THAT(
      Values<uint16_t>(engine, plan, "path", 1),  // bf16 of 0, 1, 2, 0.25, 1.25, ..
      testing::ElementsAre(0, 0x3f80, 0x4000, 0x3e80, 0x3fa0, 0x4010, 0x3f00, 0x3fc0, 0x4020));
  const std::vector<uint8_t> raw = Values<uint8_t>(engine, plan, "raw", 1);
  for (size_t i = 0; i < raw.size(); ++i) EXPECT_EQ(raw[i], i);
}

TEST(StepEngineTest, TransformsApplyToLabelsAndRecordIds) {
  const auto plan = MakePlan(R"pb(
                               dataset: "test"
                               global_batch: 3
                               num_cores: 1
                               epochs: 1
                               outputs {
                                 name: "class"
                                 feature: "label"
                                 transforms {
                                   label_map {
                                     keys: [ 2, 0 ]
                                     values: [ 20, 5000000000 ]
                                     default_value: -1
                                   }
                                 }
                                 dtype: INT64
                               }
                               outputs {
                                 name: "hot"
                                 feature: "label"
                                 transforms { one_hot { depth: 2 } }
                                 dtype: UINT8
                               }
                               outputs {
                                 name: "hot-pair"
                                 feature: "pair"
                                 shape: 2
                                 transforms { one_hot { depth: 3 on_value: 4 off_value: 1 } }
                                 dtype: BFLOAT16
                               }
                               outputs {
                                 name: "id"
                                 feature: "record_id"
                                 transforms { cast { dtype: FLOAT32 } }
                                 dtype: FLOAT32
                               }
                             )pb",
                             OpenTestDataset(TestShards({3})));
  StepEngine engine({.threads = 1, .max_threads = 1});
  EXPECT_THAT(Values<int64_t>(engine, plan, "class", 1), testing::ElementsAre(5000000000, -1, 20));
  EXPECT_THAT(Values<uint8_t>(engine, plan, "hot", 1), testing::ElementsAre(1, 0, 0, 1, 0, 0));
  // The pairs are (0, 0), (1, -1) and (2, -2).
  const uint16_t one = 0x3f80, four = 0x4080;
  EXPECT_THAT(Values<uint16_t>(engine, plan, "hot-pair", 1),
              testing::ElementsAre(four, one, one, four, one, one,  //
                                   one, four, one, one, one, one,   //
                                   one, one, four, one, one, one));
  EXPECT_THAT(Values<float>(engine, plan, "id", 1), testing::ElementsAre(0, 1, 2));
}

TEST(StepEngineTest, ALabelMissingFromALabelMapIsDamageNamingRecordAndValue) {
  const auto dataset = OpenTestDataset(TestShards({5}));
  const std::string spec =
      "dataset: 'test' global_batch: 5 num_cores: 1 epochs: 1 "
      "outputs { name: 'y' feature: 'label' transforms { label_map { keys: [0, 1, 2, 4] "
      "values: [9, 8, 7, 6] } } dtype: INT32 }";
  StepEngine engine({.threads = 1, .max_threads = 1});
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(MakePlan(spec, dataset), {});
  ASSERT_THAT(stream, IsOk());
  EXPECT_THAT((*stream)->Next(), StatusIs(absl::StatusCode::kDataLoss,
                                          AllOf(HasSubstr("record_id 3"), HasSubstr("output 'y'"),
                                                HasSubstr("label_map has no key 3"))));
  EXPECT_THAT(Values<int32_t>(engine, MakePlan(spec + " on_corrupt: MASK", dataset), "y", 1),
              testing::ElementsAre(9, 8, 7, 0, 6));
}

// One 8 x 8 picture per example, resized and flipped. `more` is the rest of the output's spec.
std::string ResizedSpec(const std::string& more) {
  return absl::StrCat(
      "dataset: 'test' seed: 5 global_batch: 6 num_cores: 1 epochs: 1 outputs { name: 'x' feature: "
      "'image' transforms { decode_jpeg {} } transforms { random_resized_crop { height: 8 width: 8 "
      "} } transforms { random_flip {} } ",
      more, " }");
}

TEST(StepEngineTest, RoundToUint8ThenNormalizeEqualsNormalizedUint8Pixels) {
  const auto dataset = OpenTestDataset(TestShards({12}));
  const std::string normalize =
      "transforms { normalize { scale: 0.5 mean: [1, 2, 3] stddev: [64, 32, 16] } }";
  StepEngine engine({.threads = 1, .max_threads = 1});
  const std::vector<uint8_t> pixels =
      Values<uint8_t>(engine, MakePlan(ResizedSpec("dtype: UINT8"), dataset), "x", 2);
  std::vector<float> want;
  const float stddev[3] = {64, 32, 16}, mean[3] = {1, 2, 3};  // Dividing by `stddev` is exact.
  for (size_t i = 0; i < pixels.size(); ++i) {
    want.push_back(pixels[i] * (0.5f / stddev[i % 3]) + -mean[i % 3] / stddev[i % 3]);
  }
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    const auto rounded = MakePlan(
        ResizedSpec(absl::StrCat("transforms { round_to_uint8 {} }", normalize, "dtype: FLOAT32")),
        dataset);
    EXPECT_EQ(Values<float>(engine, rounded, "x", 2), want) << target;
    // Without `normalize`, an output of UINT8 or FLOAT32 has the values of the pixels.
    const std::string round = "transforms { round_to_uint8 {} } ";
    EXPECT_EQ(
        Values<uint8_t>(engine, MakePlan(ResizedSpec(round + "dtype: UINT8"), dataset), "x", 2),
        pixels);
    EXPECT_EQ(
        Values<float>(engine, MakePlan(ResizedSpec(round + "dtype: FLOAT32"), dataset), "x", 2),
        std::vector<float>(pixels.begin(), pixels.end()));
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
  // Without rounding, the values differ. Otherwise the checks above would show nothing.
  const auto unrounded = MakePlan(ResizedSpec(absl::StrCat(normalize, "dtype: FLOAT32")), dataset);
  EXPECT_NE(Values<float>(engine, unrounded, "x", 2), want);
}

// Damage.

// Makes a shard of 20 records. In the payload of one of them, `record`, a bit is flipped.
std::vector<std::string> DamagedShards(int64_t record) {
  ShardBuilder builder;
  uint64_t middle = 0;
  for (int64_t i = 0; i < 20; ++i) {
    const uint64_t begin = builder.size();
    builder.Add(TestRecord(i));
    if (i == record) middle = (begin + builder.size()) / 2;
  }
  return {WithFlippedBit(builder.Build(), middle * 8)};
}

TEST(StepEngineTest, FailDeliversEarlierStepsThenNamesShardRecordAndOffset) {
  const auto plan = MakePlan(
      absl::StrCat("dataset: 'test' global_batch: 4 num_cores: 2 epochs: 1 ", AllOutputs()),
      OpenTestDataset(DamagedShards(13)));
  StepEngine engine({.threads = 3});
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(plan, {.count = 100, .core_end = 2});
  ASSERT_THAT(stream, IsOk());
  for (int i = 0; i < 6; ++i) EXPECT_THAT((*stream)->Next(), IsOk());  // Reads records 0 to 11.
  const auto damaged =
      StatusIs(absl::StatusCode::kDataLoss,
               AllOf(HasSubstr("shard-0.tfrecord"), HasSubstr("record 13"), HasSubstr("offset")));
  EXPECT_THAT((*stream)->Next(), damaged);
  EXPECT_THAT((*stream)->Next(), damaged);  // The error comes again.
}

TEST(StepEngineTest, MaskZeroesTheDamagedExampleAndLeavesAllOthersUnchanged) {
  const std::string spec = ShuffledSpec("global_batch: 4 num_cores: 2 epochs: 2 on_corrupt: MASK");
  const auto good = MakePlan(spec, OpenTestDataset(TestShards({20})));
  const std::shared_ptr<Dataset> damaged_dataset = OpenTestDataset(DamagedShards(13));
  const auto damaged = MakePlan(spec, damaged_dataset);
  StepEngine engine({.threads = 3});
  absl::StatusOr<std::unique_ptr<StepStream>> a = engine.Open(good, {.count = 99, .core_end = 2});
  absl::StatusOr<std::unique_ptr<StepStream>> b =
      engine.Open(damaged, {.count = 99, .core_end = 2});
  ASSERT_THAT(a, IsOk());
  ASSERT_THAT(b, IsOk());
  int masked = 0;
  for (int i = 0; i < 20; ++i) {
    StepStream::Result from_good = (*a)->Next();
    StepStream::Result from_damaged = (*b)->Next();
    ASSERT_TRUE(from_good.ok() && from_good->has_value());
    ASSERT_TRUE(from_damaged.ok() && from_damaged->has_value());
    const SliceLayout& layout = good->layout();
    for (int64_t slot = 0; slot < layout.per_core_batch(); ++slot) {
      const uint8_t* data = (**from_damaged)->data();
      if (layout.View(layout.valid_index(), data).As<uint8_t>()[static_cast<size_t>(slot)] == 1) {
        EXPECT_EQ(ExampleDigest(layout, slot, data),
                  ExampleDigest(layout, slot, (**from_good)->data()));
      } else {
        ++masked;
        std::vector<uint8_t> zeros(static_cast<size_t>(layout.slice_bytes()), 0);
        EXPECT_EQ(ExampleDigest(layout, slot, data), ExampleDigest(layout, slot, zeros.data()));
      }
    }
  }
  EXPECT_EQ(masked, 2);  // Once in each epoch.
  EXPECT_EQ(damaged_dataset->damage().masked_examples(), 2);
  ASSERT_EQ(damaged_dataset->damage().entries().size(), 1u);
  EXPECT_EQ(damaged_dataset->damage().entries()[0].record, 13);
  EXPECT_EQ(damaged_dataset->damage().entries()[0].shard, "shard-0.tfrecord");
}

TEST(StepEngineTest, ARecordThatDoesNotFitTheSpecIsDamageNamingRecordAndOutput) {
  ShardBuilder builder;
  builder.Add(TestRecord(0));
  builder.Add(ExampleBuilder().AddFloats("label", {1}).Serialize());
  const auto plan = MakePlan(
      "dataset: 'test' global_batch: 2 num_cores: 1 epochs: 1 "
      "outputs { name: 'y' feature: 'label' dtype: INT64 }",
      OpenTestDataset({builder.Build()}));
  StepEngine engine({.threads = 1, .max_threads = 1});
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, {});
  ASSERT_THAT(stream, IsOk());
  EXPECT_THAT((*stream)->Next(), StatusIs(absl::StatusCode::kDataLoss,
                                          AllOf(HasSubstr("record_id 1"), HasSubstr("output 'y'"),
                                                HasSubstr("label"), HasSubstr("float"))));
}

TEST(StepEngineTest, AFailedReadIsNotMaskedAsDamage) {
  // Each pair has the storage's error and the code of the feed's error. absl::ErrnoToStatus() turns
  // ENOMEM into ResourceExhausted.
  const std::pair<absl::Status, absl::StatusCode> kFailures[] = {
      {absl::UnknownError("input/output error"), absl::StatusCode::kUnknown},
      {absl::ErrnoToStatus(ENOMEM, "input/output error"), absl::StatusCode::kUnavailable},
      {absl::ResourceExhaustedError("input/output error"), absl::StatusCode::kUnavailable},
      {absl::DataLossError("input/output error"), absl::StatusCode::kUnavailable},
  };
  for (const auto& [failure, code] : kFailures) {
    SCOPED_TRACE(failure.ToString());
    auto owned = std::make_unique<ErrorSource>(TestShards({20})[0], "/data/shard.tfrecord");
    ErrorSource& source = *owned;
    std::vector<std::unique_ptr<const RecordSource>> shards;
    absl::StatusOr<TfRecordShard> shard = TfRecordShard::Create(std::move(owned));
    ASSERT_THAT(shard, IsOk());
    source.FailAt(shard->index().span(2).offset, failure);
    shards.push_back(std::make_unique<TfRecordShard>(*std::move(shard)));
    absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Create("test", std::move(shards));
    ASSERT_THAT(dataset, IsOk());
    // The content of a feed with on_corrupt: MASK must not depend on a disk or network that fails
    // for a moment.
    const auto plan = MakePlan(
        absl::StrCat("dataset: 'test' global_batch: 4 num_cores: 1 epochs: 1 on_corrupt: MASK ",
                     AllOutputs()),
        *dataset);
    StepEngine engine({.threads = 1, .max_threads = 1});
    absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, {});
    ASSERT_THAT(stream, IsOk());
    EXPECT_THAT((*stream)->Next(),
                StatusIs(code, AllOf(HasSubstr("shard.tfrecord"), HasSubstr("record 2"),
                                     HasSubstr("input/output error"))));
    EXPECT_EQ((*dataset)->damage().masked_examples(), 0);
  }
}

TEST(StepEngineTest, ADecoderThatRunsOutOfMemoryIsNotMaskedAsDamage) {
  // libjpeg keeps all of a progressive image's coefficients, here more than 1000 bytes.
  const std::vector<uint8_t> pixels(64 * 256 * 3, 77);
  const absl::StatusOr<std::string> jpeg = EncodeJpeg(pixels, 64, 256, 3, {.progressive = true});
  ASSERT_THAT(jpeg, IsOk());
  ShardBuilder builder;
  builder.Add(ExampleBuilder().AddBytes("image", *jpeg).Serialize());
  const std::shared_ptr<Dataset> dataset = OpenTestDataset({builder.Build()});
  const auto plan = MakePlan(
      "dataset: 'test' global_batch: 1 num_cores: 1 epochs: 1 on_corrupt: MASK "
      "outputs { name: 'x' feature: 'image' dtype: UINT8 transforms { decode_jpeg {} } "
      "  transforms { resize { height: 8 width: 8 } } }",
      dataset);
  ASSERT_EQ(setenv("JPEGMEM", "1", /*overwrite=*/1), 0);  // Allows libjpeg 1000 bytes.
  {
    StepEngine engine({.threads = 1, .max_threads = 1});
    absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, {});
    ASSERT_THAT(stream, IsOk());
    EXPECT_THAT((*stream)->Next(),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr("shard-0.tfrecord"), HasSubstr("output 'x'"),
                               HasSubstr("give the process more memory"))));
  }
  unsetenv("JPEGMEM");
  EXPECT_EQ(dataset->damage().masked_examples(), 0);
  StepEngine engine({.threads = 1, .max_threads = 1});  // Without JPEGMEM, the image is good.
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, {});
  ASSERT_THAT(stream, IsOk());
  EXPECT_THAT((*stream)->Next(), IsOk());
  EXPECT_EQ(dataset->damage().masked_examples(), 0);
}

// Limits and life cycle.

// The bytes that a slice takes of the memory budget.
int64_t BudgetBytesOf(const FeedPlan& plan) {
  return plan.layout().slice_bytes() + kSliceOverheadBytes;
}

TEST(StepEngineTest, BudgetIsNeverExceededAndEveryStreamMoves) {
  const auto plan =
      MakePlan(ShuffledSpec("global_batch: 4 num_cores: 4"), OpenTestDataset(TestShards({20})));
  const int64_t slice_bytes = BudgetBytesOf(*plan);
  StepEngine engine({.threads = 2, .memory_budget_bytes = 5 * slice_bytes});
  std::vector<std::unique_ptr<StepStream>> streams;
  for (int i = 0; i < 4; ++i) {
    absl::StatusOr<std::unique_ptr<StepStream>> stream =
        engine.Open(plan, {.count = 50, .core_end = 4});
    ASSERT_THAT(stream, IsOk());
    streams.push_back(*std::move(stream));
  }
  for (int round = 0; round < 50 * 4; ++round) {
    for (const std::unique_ptr<StepStream>& stream : streams) {
      ASSERT_THAT(stream->Next(), IsOk());  // The slice is dropped at once.
      EXPECT_LE(engine.GetStats().memory_used_bytes, 5 * slice_bytes);
    }
  }
}

TEST(StepEngineTest, AStreamThatKeepsItsSlicesDoesNotStopAnother) {
  const auto plan =
      MakePlan(ShuffledSpec("global_batch: 4 num_cores: 4"), OpenTestDataset(TestShards({20})));
  StepEngine engine({.threads = 2, .memory_budget_bytes = 8 * BudgetBytesOf(*plan)});
  absl::StatusOr<std::unique_ptr<StepStream>> hog = engine.Open(plan, {.count = 50, .core_end = 4});
  ASSERT_THAT(hog, IsOk());
  std::vector<StepStream::Result> kept;
  for (int i = 0; i < 2; ++i)
    kept.push_back((*hog)->Next());  // `hog` gets at most a quarter of the budget.
  EXPECT_EQ(DrainAll(engine, plan, {.count = 5, .core_end = 4}).size(), 20u);
}

TEST(StepEngineTest, ANewStreamGetsItsFirstSliceThoughPausedOnesHoldTheWholeBudget) {
  const auto dataset = OpenTestDataset(TestShards({20}));
  const auto plan = MakePlan(ShuffledSpec("global_batch: 4 num_cores: 4"), dataset);
  const int64_t budget = 8 * BudgetBytesOf(*plan);
  StepEngine engine({.threads = 2, .memory_budget_bytes = budget});
  std::vector<std::unique_ptr<StepStream>> paused;
  for (int i = 0; i < 4; ++i) {
    // Each stream has its own plan, because streams of one plan share their slices.
    absl::StatusOr<std::unique_ptr<StepStream>> stream =
        engine.Open(MakePlan(ShuffledSpec("global_batch: 4 num_cores: 4"), dataset),
                    {.count = 50, .core_end = 4});
    ASSERT_THAT(stream, IsOk());
    paused.push_back(*std::move(stream));
  }
  ASSERT_TRUE(WaitUntil([&] { return engine.GetStats().memory_used_bytes == budget; }));
  // Trainers of one job wait for each other. If the fifth stream got no slice, all five trainers
  // would stop.
  const StepRange range = {.count = 5, .core_end = 4};
  const Digests digests = DrainAll(engine, plan, range);
  EXPECT_EQ(digests.size(), 20u);
  // Slices that were taken back from the paused streams are made again.
  for (const std::unique_ptr<StepStream>& stream : paused) {
    for (const auto& [place, digest] : digests) {
      StepStream::Result slice = stream->Next();
      ASSERT_TRUE(slice.ok() && slice->has_value());
      EXPECT_EQ(std::make_pair((**slice)->step(), (**slice)->core()), place);
      EXPECT_EQ(SliceDigest((**slice)->layout(), (**slice)->data()), digest);
    }
  }
}

TEST(StepEngineTest, AStreamThatWaitsForALotOfMemoryDoesNotStopThoseThatNeedLittle) {
  const std::shared_ptr<Dataset> dataset = OpenTestDataset(TestShards({20}));
  const std::string id = "outputs { name: 'id' feature: 'record_id' dtype: INT64 }";
  const auto small = MakePlan("dataset: 'test' global_batch: 4 num_cores: 4 " + id, dataset);
  const auto large =
      MakePlan("dataset: 'test' tail: PAD global_batch: 1024 num_cores: 1 " + id, dataset);
  StepEngine engine({.threads = 2, .memory_budget_bytes = BudgetBytesOf(*large)});
  absl::StatusOr<std::unique_ptr<StepStream>> keeper =
      engine.Open(small, {.count = 50, .core_end = 4});
  ASSERT_THAT(keeper, IsOk());
  StepStream::Result kept = (*keeper)->Next();
  absl::StatusOr<std::unique_ptr<StepStream>> waiting = engine.Open(large, {});
  ASSERT_THAT(waiting, IsOk());
  EXPECT_EQ(DrainAll(engine, small, {.count = 5, .core_end = 4}).size(), 20u);
  // The waiting stream moves on as soon as there is room.
  kept = std::optional<SlicePtr>();
  keeper->reset();
  EXPECT_THAT((*waiting)->Next(), IsOk());
}

TEST(StepEngineTest, LookAheadIsBoundedHoweverManyAndSmallTheSlices) {
  const auto plan = MakePlan(
      "dataset: 'test' global_batch: 65536 num_cores: 65536 tail: PAD "
      "outputs { name: 'id' feature: 'record_id' dtype: INT64 }",
      OpenTestDataset(TestShards({1})));
  StepEngine engine({.threads = 1, .max_threads = 1});
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(plan, {.count = 2, .core_end = 65536});
  ASSERT_THAT(stream, IsOk());
  // A slice has 128 bytes. Its overhead is far larger, and counts in the budget, too.
  ASSERT_TRUE(WaitUntil(
      [&] { return engine.GetStats().memory_used_bytes >= 1024 * BudgetBytesOf(*plan); }));
  EXPECT_THAT((*stream)->Next(), IsOk());
  EXPECT_LE(engine.GetStats().memory_used_bytes, 1024 * BudgetBytesOf(*plan));
}

TEST(StepEngineTest, ASliceLargerThanTheBudgetIsRefused) {
  const auto plan =
      MakePlan(ShuffledSpec("global_batch: 4 num_cores: 4"), OpenTestDataset(TestShards({20})));
  StepEngine engine({.threads = 1, .max_threads = 1, .memory_budget_bytes = 100});
  EXPECT_THAT(engine.Open(plan, {}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("memory budget of 100")));
}

TEST(StepEngineTest, BadRangesAreRefused) {
  const auto plan = MakePlan(ShuffledSpec("global_batch: 4 num_cores: 4 epochs: 1"),
                             OpenTestDataset(TestShards({20})));
  StepEngine engine({.threads = 1, .max_threads = 1});
  for (const StepRange& range :
       {StepRange{.first_step = -1}, StepRange{.count = 0}, StepRange{.stride = 0},
        StepRange{.core_begin = 1, .core_end = 1}, StepRange{.core_begin = -1, .core_end = 1},
        StepRange{.core_end = 5}, StepRange{.first_step = 6}}) {
    EXPECT_THAT(engine.Open(plan, range),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("")));
  }
  // A range that begins just after the last step is empty, but no error. A client may open a feed
  // that it has already finished.
  EXPECT_TRUE(DrainAll(engine, plan, {.first_step = 5}).empty());
}

TEST(StepEngineTest, TheLargestRangesDoNotOverflow) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto plan = MakePlan(ShuffledSpec("global_batch: 4 num_cores: 4 tail: PAD"),
                             OpenTestDataset(TestShards({7})));
  StepEngine engine({.threads = 2});
  for (const StepRange& range :
       {StepRange{.first_step = kMost - 5, .count = kMost, .stride = 2, .core_end = 4},
        StepRange{.first_step = kMost - 1, .count = kMost, .stride = kMost, .core_end = 4},
        StepRange{.count = 2, .stride = kMost - 1, .core_end = 4},
        StepRange{.count = kMost, .core_end = 4}}) {
    absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, range);
    ASSERT_THAT(stream, IsOk());
    for (int i = 0; i < 8; ++i) {
      StepStream::Result slice = (*stream)->Next();
      ASSERT_THAT(slice, IsOk());
      if (!slice->has_value()) break;
      EXPECT_EQ((**slice)->step(), range.first_step + i / 4 * range.stride);
    }
  }
}

TEST(StepEngineTest, CancelAnswersAWaitingNextExactlyOnce) {
  const auto plan =
      MakePlan(ShuffledSpec("global_batch: 4 num_cores: 1"), OpenTestDataset(TestShards({20})));
  for (int round = 0; round < 50; ++round) {
    StepEngine engine({.threads = 2});
    absl::StatusOr<std::unique_ptr<StepStream>> stream =
        engine.Open(plan, {.count = 50, .core_end = 1});
    ASSERT_THAT(stream, IsOk());
    const auto answers = std::make_shared<std::atomic<int>>(0);
    (*stream)->Next([answers](const StepStream::Result&) { ++*answers; });
    (*stream)->Cancel();
    EXPECT_EQ(*answers, 1);
    EXPECT_THAT((*stream)->Next(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
  }
}

TEST(StepEngineTest, SlicesMayOutliveTheEngine) {
  const auto plan =
      MakePlan(ShuffledSpec("global_batch: 4 num_cores: 1"), OpenTestDataset(TestShards({20})));
  StepStream::Result slice = std::optional<SlicePtr>();
  {
    StepEngine engine({.threads = 2});
    absl::StatusOr<std::unique_ptr<StepStream>> stream =
        engine.Open(plan, {.count = 50, .core_end = 1});
    ASSERT_THAT(stream, IsOk());
    slice = (*stream)->Next();
  }
  ASSERT_TRUE(slice.ok() && slice->has_value());
  EXPECT_EQ((**slice)->step(), 0);
}

}  // namespace
}  // namespace systole
