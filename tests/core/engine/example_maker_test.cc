#include "core/engine/example_maker.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/engine/first_error.h"
#include "core/example/example_builder.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/interrupt/interrupt.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/error_source.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(FirstErrorTest, TheErrorOfTheLowestSlotIsKeptInAnyOrder) {
  FirstError error;
  EXPECT_THAT(error.status(), IsOk());
  error.Add(7, absl::DataLossError("seven"));
  error.Add(3, absl::DataLossError("three"));
  error.Add(5, absl::DataLossError("five"));
  error.Add(3, absl::DataLossError("three again"));
  error.Add(0, absl::OkStatus());
  EXPECT_THAT(error.status(), StatusIs(absl::StatusCode::kDataLoss, "three"));
}

// The size in bytes of this process's address space.
uint64_t AddressSpace() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST(ExampleMakerTest, AFailedScratchAllocationIsUnavailableAndNotMasked) {
  // In layout NCHW an example is made in scratch memory, and then written to its place.
  // Here the scratch memory takes 103 MiB.
  const auto dataset = OpenTestDataset(TestShards({1}));
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText("dataset: 'test' global_batch: 1 num_cores: 1 on_corrupt: MASK "
                   "outputs { name: 'x' feature: 'image' dtype: FLOAT32 layout: NCHW "
                   "  transforms { decode_jpeg {} } "
                   "  transforms { resize { height: 3000 width: 3000 } } }"),
      dataset);
  ASSERT_THAT(plan, IsOk());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit little = {.rlim_cur = AddressSpace() + (uint64_t{64} << 20),
                         .rlim_max = before.rlim_max};
  ExampleMaker maker;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  // This call fails before it uses the slice, so the slice may be null.
  const absl::Status status = maker.Make(*plan, /*step=*/0, /*core=*/0, 0, 1, /*slice=*/nullptr);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("refused a buffer")));
  EXPECT_EQ(dataset->damage().masked_examples(), 0);
}

// This test is left out under a sanitizer, because a sanitizer's operator new does not throw.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(ExampleMakerTest, AFailedAllocationInATransformIsUnavailableAndNotMasked) {
  const auto dataset = OpenTestDataset(TestShards({1}));
  // Mirrors a whole image, then enlarges it to 27 MB of floats.
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
      FeedPlan::Create(SpecFromText("dataset: 'test' global_batch: 1 num_cores: 1 on_corrupt: MASK "
                                    "outputs { name: 'x' feature: 'image' dtype: UINT8 "
                                    "  transforms { decode_jpeg {} } transforms { random_flip {} } "
                                    "  transforms { resize { height: 1500 width: 1500 } } }"),
                       dataset);
  ASSERT_THAT(plan, IsOk());
  std::vector<uint8_t> slice(static_cast<size_t>((*plan)->layout().slice_bytes()));
  ExampleMaker maker;
  ASSERT_THAT(maker.Make(*plan, /*step=*/0, /*core=*/0, 0, 1, slice.data()), IsOk());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit little = {.rlim_cur = AddressSpace() + (uint64_t{8} << 20),
                         .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  const absl::Status status = maker.Make(*plan, /*step=*/0, /*core=*/0, 0, 1, slice.data());
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("refused memory")));
  EXPECT_EQ(dataset->damage().masked_examples(), 0);
}
#endif

// A plan whose first step has eight records, and the source that these records are read from. If
// the records lie side by side in the shard, one read gets all of them. If they lie apart, each
// record is read by itself.
struct Distant {
  ErrorSource* source = nullptr;
  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<const FeedPlan> plan;
};
Distant MakeDistant(bool apart) {
  Distant distant;
  auto source = std::make_unique<ErrorSource>(TestShards({16})[0], "/data/a.tfrecord");
  distant.source = source.get();
  absl::StatusOr<TfRecordShard> shard = TfRecordShard::Create(std::move(source));
  EXPECT_THAT(shard, IsOk());
  std::vector<std::unique_ptr<const RecordSource>> shards;
  shards.push_back(std::make_unique<TfRecordShard>(*std::move(shard)));
  distant.dataset = *Dataset::Create("test", std::move(shards));
  distant.plan = *FeedPlan::Create(
      SpecFromText(
          absl::StrCat("dataset: 'test' global_batch: 8 num_cores: 1 on_corrupt: MASK epochs: 1 ",
                       apart ? "shuffle { mode: GLOBAL } seed: 5 " : "",
                       "outputs { name: 'y' feature: 'label' dtype: INT64 }")),
      distant.dataset);
  distant.source->ResetCounts();
  return distant;
}

TEST(ExampleMakerTest, AnOutageCostsOneReadAndNoChangeCheck) {
  for (const bool apart : {false, true}) {
    const Distant distant = MakeDistant(apart);
    distant.source->FailAll(absl::UnavailableError("store is away"));
    distant.source->SetChanged(absl::UnavailableError("store is away"));
    std::vector<uint8_t> slice(static_cast<size_t>(distant.plan->layout().slice_bytes()));
    ExampleMaker maker;
    EXPECT_THAT(
        maker.Make(distant.plan, /*step=*/0, /*core=*/0, 0, 8, slice.data()),
        StatusIs(absl::StatusCode::kUnavailable,
                 AllOf(HasSubstr("a.tfrecord"), HasSubstr("record_id"), HasSubstr("is away"))));
    EXPECT_EQ(distant.source->num_reads(), 1);
    EXPECT_EQ(distant.source->num_checks(), 0);
    EXPECT_EQ(distant.dataset->damage().masked_examples(), 0);
  }
}

TEST(ExampleMakerTest, AFailedReadOfARecordDoesNotStopReadsOfOtherRecords) {
  const Distant distant = MakeDistant(/*apart=*/true);
  distant.source->FailAll(absl::UnknownError("input/output error"));
  std::vector<uint8_t> slice(static_cast<size_t>(distant.plan->layout().slice_bytes()));
  ExampleMaker maker;
  EXPECT_THAT(maker.Make(distant.plan, /*step=*/0, /*core=*/0, 0, 8, slice.data()),
              StatusIs(absl::StatusCode::kUnknown, HasSubstr("record_id")));
  EXPECT_GE(distant.source->num_reads(), 8);
}

// Makes 16 records with the images `image` and `other`:
// * record 3: the headers of both images are damaged;
// * records 4 and 7: both images are cut off in the middle;
// * record 5: `other` is no JPEG;
// * record 9: both images are progressive, and not damaged;
// * record 12 is no tf.train.Example.
std::string ShardWithDamage() {
  ShardBuilder builder;
  for (int64_t i = 0; i < 16; ++i) {
    std::string jpeg = TestJpeg(i);
    if (i == 3) jpeg[0] = 'x';
    if (i == 4 || i == 7) jpeg.resize(jpeg.size() / 2);
    if (i == 9) {
      jpeg = *EncodeJpeg(std::vector<uint8_t>(64 * 64 * 3, 77), 64, 64, 3, {.progressive = true});
    }
    builder.Add(i == 12 ? "no example"
                        : ExampleBuilder()
                              .AddBytes("image", jpeg)
                              .AddBytes("other", i == 5 ? "no JPEG" : jpeg)
                              .Serialize());
  }
  return builder.Build();
}

constexpr char kTwoImages[] =
    "dataset: 'test' seed: 5 global_batch: 16 num_cores: 1 shuffle { mode: GLOBAL } "
    "outputs { name: 'x' feature: 'image' dtype: FLOAT32 transforms { decode_jpeg {} } "
    "  transforms { random_resized_crop { height: 16 width: 16 } } } "
    "outputs { name: 'y' feature: 'other' dtype: UINT8 transforms { decode_jpeg {} } "
    "  transforms { resize { height: 8 width: 8 } } } ";

TEST(ExampleMakerTest, ExamplesMadeTogetherEqualExamplesMadeAlone) {
  // Each step has records of both shards, so its records cannot be read in one piece.
  const auto dataset = OpenTestDataset({ShardWithDamage(), ShardWithDamage()});
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
      FeedPlan::Create(SpecFromText(absl::StrCat(kTwoImages, "on_corrupt: MASK")), dataset);
  ASSERT_THAT(plan, IsOk());
  const auto slice_bytes = static_cast<size_t>((*plan)->layout().slice_bytes());
  ExampleMaker maker;
  for (int64_t step = 0; step < 6; ++step) {  // Three epochs.
    std::vector<uint8_t> together(slice_bytes), alone(slice_bytes);
    ASSERT_THAT(maker.Make(*plan, step, 0, 0, 16, together.data()), IsOk());
    for (int64_t slot = 0; slot < 16; ++slot) {
      ASSERT_THAT(maker.Make(*plan, step, 0, slot, slot + 1, alone.data()), IsOk());
    }
    EXPECT_EQ(together, alone) << "step " << step;
  }
  // In each epoch five records of each shard are masked twice: once when the whole slice is made,
  // and once when the example is made alone.
  EXPECT_EQ(dataset->damage().masked_examples(), 3 * 2 * 5 * 2);
  for (const DamageLog::Entry& entry : dataset->damage().entries()) {
    if (entry.record % 16 != 5) continue;  // Only its image `other` is damaged.
    EXPECT_THAT(entry.cause, HasSubstr("output 'y': image of 7 bytes is not a JPEG"));
  }
  EXPECT_EQ(dataset->damage().entries().size(), 10u);
}

// Output `x` is the whole image, resized to 4 x 4 pixels. `y` is the same image, flipped at random.
constexpr char kFlipped[] =
    "dataset: 'test' seed: 5 global_batch: 16 num_cores: 1 "
    "outputs { name: 'x' feature: 'image' dtype: UINT8 transforms { decode_jpeg {} } "
    "  transforms { resize { height: 4 width: 4 } } } "
    "outputs { name: 'y' feature: 'image' dtype: UINT8 transforms { decode_jpeg {} } "
    "  transforms { resize { height: 4 width: 4 } } transforms { random_flip {} } } ";

TEST(ExampleMakerTest, EachEpochDrawsNewRandomFlipsForItsRecords) {
  const auto dataset = OpenTestDataset(TestShards({16}));
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
      FeedPlan::Create(SpecFromText(kFlipped), dataset);
  ASSERT_THAT(plan, IsOk());
  const SliceLayout& layout = (*plan)->layout();
  ExampleMaker maker;
  std::set<std::string> epochs;
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<uint8_t> slice(static_cast<size_t>(layout.slice_bytes()));
    ASSERT_THAT(maker.Make(*plan, epoch, 0, 0, 16, slice.data()), IsOk());
    std::string flips;
    for (int64_t slot = 0; slot < 16; ++slot) {
      const auto image = [&](size_t output) {
        const SliceTensor& tensor =
            layout.tensors()[static_cast<size_t>((*plan)->outputs()[output].tensor)];
        const uint8_t* begin = slice.data() + tensor.offset + slot * 4 * 4 * 3;
        return std::vector<uint8_t>(begin, begin + 4 * 4 * 3);
      };
      std::vector<uint8_t> mirrored;
      for (size_t i = 0; i < 16; ++i) {
        const size_t from = (i / 4 * 4 + 3 - i % 4) * 3;
        for (size_t c = 0; c < 3; ++c) mirrored.push_back(image(0)[from + c]);
      }
      const bool flipped = image(1) == mirrored;
      ASSERT_TRUE(flipped || image(1) == image(0)) << "epoch " << epoch << ", slot " << slot;
      flips += flipped ? 'f' : '.';
    }
    EXPECT_THAT(flips, HasSubstr("f"));
    EXPECT_THAT(flips, HasSubstr("."));
    epochs.insert(flips);
  }
  EXPECT_EQ(epochs.size(), 5u);
}

TEST(ExampleMakerTest, AFailedCallDoesNotAffectTheNextCall) {
  const auto dataset = OpenTestDataset({ShardWithDamage()});
  absl::StatusOr<std::shared_ptr<const FeedPlan>> fail =
      FeedPlan::Create(SpecFromText(kTwoImages), dataset);
  ASSERT_THAT(fail, IsOk());
  ExampleMaker used;
  for (int64_t step = 0; step < 5; ++step) {
    for (int64_t end = 1; end <= 16; ++end) {
      const auto slice_bytes = static_cast<size_t>((*fail)->layout().slice_bytes());
      std::vector<uint8_t> ours(slice_bytes), theirs(slice_bytes);
      ExampleMaker fresh;
      const absl::Status status = fresh.Make(*fail, step, 0, 0, end, theirs.data());
      EXPECT_EQ(used.Make(*fail, step, 0, 0, end, ours.data()), status);
      EXPECT_EQ(ours, theirs);
    }
  }
}

// Makes the whole slice in turns. Each turn is as short as possible, and uses a new maker. Returns
// the number of turns.
int MakeInTurns(const std::shared_ptr<const FeedPlan>& plan, int64_t step, ExampleRun& run,
                uint8_t* slice) {
  int turns = 1;
  while (!ExampleMaker().Make(plan, step, 0, run, slice, [] { return true; })) ++turns;
  return turns;
}

// Specs with images, with examples that are mixed in groups, and with padding.
std::vector<std::string> SpecsForTurns() {
  return {absl::StrCat(kTwoImages, "on_corrupt: MASK"),
          "dataset: 'test' seed: 5 global_batch: 16 num_cores: 1 shuffle { mode: GLOBAL } "
          "outputs { name: 'x' feature: 'image' dtype: FLOAT32 transforms { decode_jpeg {} } "
          "  transforms { random_resized_crop { height: 64 width: 64 } } } "
          "mix { group: 4 images: 'x' mixup {} } on_corrupt: MASK",
          "dataset: 'test' global_batch: 32 num_cores: 1 tail: PAD "
          "outputs { name: 'x' feature: 'image' dtype: UINT8 transforms { decode_jpeg {} } "
          "  transforms { resize { height: 99 width: 99 } } } on_corrupt: MASK"};
}

TEST(ExampleMakerTest, ARunInSeveralTurnsEqualsARunInOneTurn) {
  for (const std::string& spec : SpecsForTurns()) {
    SCOPED_TRACE(spec);
    const auto dataset = OpenTestDataset({ShardWithDamage()});
    absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
        FeedPlan::Create(SpecFromText(spec), dataset);
    ASSERT_THAT(plan, IsOk());
    const int64_t batch = (*plan)->layout().per_core_batch();
    const auto slice_bytes = static_cast<size_t>((*plan)->layout().slice_bytes());
    for (int64_t step = 0; step < 3; ++step) {
      // Both slices begin as zeros. No maker writes the bytes between the tensors.
      std::vector<uint8_t> whole(slice_bytes), turned(slice_bytes);
      ASSERT_THAT(ExampleMaker().Make(*plan, step, 0, 0, batch, whole.data()), IsOk());
      ExampleRun run = {.examples = {.begin = 0, .end = batch}};
      EXPECT_GT(MakeInTurns(*plan, step, run, turned.data()), 3);
      EXPECT_THAT(run.error.status(), IsOk());
      EXPECT_EQ(whole, turned);
    }
  }
}

TEST(ExampleMakerTest, ARunInSeveralTurnsReportsTheErrorOfARunInOneTurn) {
  const auto dataset = OpenTestDataset({ShardWithDamage()});
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
      FeedPlan::Create(SpecFromText(kTwoImages), dataset);
  ASSERT_THAT(plan, IsOk());
  std::vector<uint8_t> slice(static_cast<size_t>((*plan)->layout().slice_bytes()));
  for (int64_t step = 0; step < 5; ++step) {
    ExampleRun run = {.examples = {.begin = 0, .end = 16}};
    EXPECT_GT(MakeInTurns(*plan, step, run, slice.data()), 3);
    EXPECT_EQ(run.error.status(), ExampleMaker().Make(*plan, step, 0, 0, 16, slice.data()));
  }
}

TEST(ExampleMakerTest, AnInterruptedRunMasksNothingMoreAndLeavesTheMakerReusable) {
  for (const std::string& spec : SpecsForTurns()) {
    const auto dataset = OpenTestDataset({ShardWithDamage()});
    absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
        FeedPlan::Create(SpecFromText(spec), dataset);
    ASSERT_THAT(plan, IsOk());
    std::vector<uint8_t> slice(static_cast<size_t>((*plan)->layout().slice_bytes()));
    // The flag is raised when the maker asks for the `asked`-th time whether to end its turn. If
    // `asked` is 0, the flag is raised before the work begins.
    for (int asked = 0; asked < 8; ++asked) {
      InterruptFlag unwanted;
      if (asked == 0) unwanted.Raise();
      const InterruptScope scope(unwanted);
      ExampleMaker maker;
      ExampleRun run = {.examples = {.begin = 0, .end = (*plan)->layout().per_core_batch()}};
      int64_t damaged = 0;
      int left = asked;
      EXPECT_TRUE(maker.Make(*plan, 0, 0, run, slice.data(), [&] {
        if (left-- == 1) {
          unwanted.Raise();
          damaged = dataset->damage().masked_examples();
        }
        return false;
      }));
      if (unwanted.is_raised()) {
        EXPECT_EQ(dataset->damage().masked_examples(), damaged);
      }
      // After the interruption, the maker works like a new one.
      std::vector<uint8_t> again(slice.size()), fresh(slice.size());
      InterruptFlag wanted;
      const InterruptScope scope_of_next(wanted);
      const int64_t batch = (*plan)->layout().per_core_batch();
      ASSERT_THAT(maker.Make(*plan, 1, 0, 0, batch, again.data()), IsOk());
      ASSERT_THAT(ExampleMaker().Make(*plan, 1, 0, 0, batch, fresh.data()), IsOk());
      EXPECT_EQ(again, fresh);
    }
  }
}

// Bytes that the allocator has handed out. mallinfo2 does not see AddressSanitizer's memory, so
// under AddressSanitizer the number is always the same.
size_t UsedBytes() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

// Bytes that a maker keeps after the first example of `plan`.
size_t BytesKeptOf(const std::shared_ptr<const FeedPlan>& plan) {
  std::vector<uint8_t> slice(static_cast<size_t>(plan->layout().slice_bytes()));
  ExampleMaker maker;
  const size_t before = UsedBytes();
  EXPECT_THAT(maker.Make(plan, /*step=*/0, /*core=*/0, 0, 1, slice.data()), IsOk());
  return UsedBytes() - before;
}

TEST(ExampleMakerTest, NothingLargeIsKeptOfARecord) {
  constexpr int kBytes = 20 << 20;
  const auto shard = ShardBuilder().Add(std::string(kBytes, 'x')).Build();
  const auto dataset = OpenTestDataset({shard});
  const auto plan = FeedPlan::Create(
      SpecFromText(absl::StrCat("dataset: 'test' global_batch: 1 num_cores: 1 "
                                "outputs { name: 'x' feature: 'record' dtype: UINT8 shape: ",
                                kBytes, " transforms { decode_raw {} } }")),
      dataset);
  ASSERT_THAT(plan, IsOk());
  EXPECT_LT(BytesKeptOf(*plan), size_t{1} << 20);
}

TEST(ExampleMakerTest, NothingLargeIsKeptOfARecordWithAnImage) {
  const auto shard = ShardBuilder()
                         .Add(ExampleBuilder()
                                  .AddBytes("image", TestJpeg(1))
                                  .AddBytes("other", std::string(20 << 20, 'x'))
                                  .Serialize())
                         .Build();
  const auto dataset = OpenTestDataset({shard});
  const auto plan = FeedPlan::Create(
      SpecFromText("dataset: 'test' global_batch: 1 num_cores: 1 outputs { name: 'x' feature: "
                   "'image' dtype: UINT8 transforms { decode_jpeg {} } "
                   "transforms { resize { height: 8 width: 8 } } }"),
      dataset);
  ASSERT_THAT(plan, IsOk());
  EXPECT_LT(BytesKeptOf(*plan), size_t{2} << 20);
}

TEST(ExampleMakerTest, NothingLargeIsKeptOfAnExampleOrItsImages) {
  const std::vector<uint8_t> pixels(size_t{12'000} * 16 * 3, 77);
  const auto jpeg = EncodeJpeg(pixels, 12'000, 16, 3, {});
  ASSERT_THAT(jpeg, IsOk());
  const auto dataset = OpenTestDataset(
      {ShardBuilder().Add(ExampleBuilder().AddBytes("image", *jpeg).Serialize()).Build()});
  // The feed has 30 decoders of 1 MiB each. Besides, it needs 12 MiB for the image of output `x0`
  // before this image is written as NCHW.
  std::string spec = "dataset: 'test' global_batch: 1 num_cores: 1 ";
  for (int i = 0; i < 30; ++i) {
    absl::StrAppend(&spec, "outputs { name: 'x", i, "' feature: 'image' dtype: FLOAT32 ",
                    "layout: NCHW transforms { decode_jpeg {} } transforms { resize { height: 1024",
                    " width: ", i == 0 ? 1024 : 8, " } } } ");
  }
  const auto plan = FeedPlan::Create(SpecFromText(spec), dataset);
  ASSERT_THAT(plan, IsOk());
  EXPECT_LT(BytesKeptOf(*plan), size_t{2} << 20);
}

TEST(ExampleMakerTest, MemoryForImagesDoesNotGrowWithTheNumberOfPlans) {
  constexpr int kSide = 480;  // An image has 0.7 MB of coefficients.
  ShardBuilder builder;
  for (int i = 0; i < 2; ++i) {
    const std::vector<uint8_t> pixels(size_t{kSide} * kSide * 3, 77);
    builder.Add(
        ExampleBuilder().AddBytes("image", *EncodeJpeg(pixels, kSide, kSide, 3, {})).Serialize());
  }
  const auto dataset = OpenTestDataset({builder.Build()});
  std::vector<std::shared_ptr<const FeedPlan>> plans;
  for (int i = 0; i < 12; ++i) {
    absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
        SpecFromText(absl::StrCat("dataset: 'test' global_batch: 2 num_cores: 1 seed: ", i,
                                  " outputs { name: 'x' feature: 'image' dtype: UINT8"
                                  "   transforms { decode_jpeg {} } "
                                  "   transforms { resize { height: 8 width: 8 } } }")),
        dataset);
    ASSERT_THAT(plan, IsOk());
    plans.push_back(*plan);
  }
  ExampleMaker maker;
  std::vector<uint8_t> slice(static_cast<size_t>(plans[0]->layout().slice_bytes()));
  const auto make = [&](const std::shared_ptr<const FeedPlan>& plan) {
    ASSERT_THAT(maker.Make(plan, /*step=*/0, /*core=*/0, 0, 2, slice.data()), IsOk());
  };
  const size_t before = UsedBytes();
  make(plans[0]);
  const size_t one = UsedBytes() - before;
  for (int round = 0; round < 2; ++round) {
    for (const auto& plan : plans) make(plan);
  }
  EXPECT_LT(UsedBytes() - before, 2 * one + (4 << 20));
}

}  // namespace
}  // namespace systole
