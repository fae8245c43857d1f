// Compares feeds whose specs have `mix` with plain code. For each of these feeds, the plain code
// takes the slices of the same feed without `mix`, and mixes their examples itself. The tests cover
// all kinds of outputs and layouts, several sizes of groups, several numbers of threads and cores,
// and damaged or missing examples.
#include "core/engine/group_mixer.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/engine/step_engine.h"
#include "core/interrupt/interrupt.h"
#include "core/numeric/bf16.h"
#include "core/numeric/float16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;
using Kind = MixDraw::Kind;
using Plan = std::shared_ptr<const FeedPlan>;

// The bytes of slices. The key is (step, core).
using Slices = std::map<std::pair<int64_t, int>, std::vector<uint8_t>>;

Plan MakePlan(const v1::FeedSpec& spec, const std::shared_ptr<Dataset>& dataset) {
  absl::StatusOr<Plan> plan = FeedPlan::Create(spec, dataset);
  EXPECT_THAT(plan, IsOk());
  return plan.ok() ? *plan : nullptr;
}

Slices Drain(const Plan& plan, int threads, const StepRange& range) {
  StepEngine engine({.threads = threads, .max_threads = threads});
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, range);
  EXPECT_THAT(stream, IsOk());
  Slices slices;
  while (true) {
    StepStream::Result slice = (*stream)->Next();
    EXPECT_THAT(slice, IsOk());
    if (!slice.ok() || !slice->has_value()) return slices;
    const CoreSlice& s = ***slice;
    // Copies the tensors, but not the bytes between them.
    std::vector<uint8_t>& bytes = slices[{s.step(), s.core()}];
    bytes.resize(static_cast<size_t>(s.layout().slice_bytes()));
    for (const SliceTensor& tensor : s.layout().tensors()) {
      std::memcpy(bytes.data() + tensor.offset, s.data() + tensor.offset,
                  static_cast<size_t>(tensor.spec.num_bytes()));
    }
  }
}

Slices DrainAll(const Plan& plan, int threads = 2) {
  return Drain(plan, threads, {.count = 1000, .core_end = plan->num_cores()});
}

// An image or a label as plain numbers, [height][width][channels]. A label is one pixel with many
// channels.
struct Example {
  int64_t height = 1;
  int64_t width = 1;
  int64_t channels = 1;
  std::vector<float> values;

  float& At(int64_t y, int64_t x, int64_t c) {
    return values[static_cast<size_t>((y * width + x) * channels + c)];
  }
};

// The address of the value (y, x, c) of the example in `slot`. `layout` says in which order the
// tensor has its values.
uint8_t* ValueOf(const SliceTensor& tensor, v1::Layout layout, const Example& example, int64_t slot,
                 int64_t y, int64_t x, int64_t c, std::vector<uint8_t>& slice) {
  const int64_t batch = tensor.per_core_batch();
  const int64_t height = example.height;
  const int64_t width = example.width;
  const int64_t channels = example.channels;
  int64_t index = ((slot * height + y) * width + x) * channels + c;
  if (layout == v1::NCHW) index = ((slot * channels + c) * height + y) * width + x;
  if (layout == v1::HWCN) index = ((y * width + x) * channels + c) * batch + slot;
  return slice.data() + tensor.offset + index * DTypeBytes(tensor.spec.dtype);
}

// Calls f(y, x, c, address of the value) for every value of the example in `slot`.
template <typename F>
void ForEachValue(const SliceTensor& tensor, v1::Layout layout, const Example& example,
                  int64_t slot, std::vector<uint8_t>& slice, F f) {
  for (int64_t y = 0; y < example.height; ++y) {
    for (int64_t x = 0; x < example.width; ++x) {
      for (int64_t c = 0; c < example.channels; ++c) {
        f(y, x, c, ValueOf(tensor, layout, example, slot, y, x, c, slice));
      }
    }
  }
}

Example Read(const SliceTensor& tensor, const v1::Output& output, bool image, int64_t slot,
             std::vector<uint8_t>& slice) {
  Example example = {.channels = tensor.spec.num_elements() / tensor.per_core_batch()};
  if (image) {
    const std::vector<int64_t>& shape = tensor.spec.shape;
    const size_t at = output.layout() == v1::NCHW ? 2 : output.layout() == v1::HWCN ? 0 : 1;
    example.height = shape[at];
    example.width = shape[at + 1];
    example.channels /= example.height * example.width;
  }
  example.values.resize(static_cast<size_t>(example.height * example.width * example.channels));
  const v1::Layout layout = image ? output.layout() : v1::NHWC;
  ForEachValue(tensor, layout, example, slot, slice,
               [&](int64_t y, int64_t x, int64_t c, const uint8_t* place) {
                 if (tensor.spec.dtype == DType::kBfloat16) {
                   uint16_t half = 0;
                   std::memcpy(&half, place, sizeof(half));
                   example.At(y, x, c) = Bf16ToFloat(half);
                 } else if (tensor.spec.dtype == DType::kFloat16) {
                   uint16_t half = 0;
                   std::memcpy(&half, place, sizeof(half));
                   example.At(y, x, c) = Float16ToFloat(half);
                 } else {
                   std::memcpy(&example.At(y, x, c), place, sizeof(float));
                 }
               });
  return example;
}

void Write(const SliceTensor& tensor, const v1::Output& output, bool image, Example example,
           int64_t slot, std::vector<uint8_t>& slice) {
  const v1::Layout layout = image ? output.layout() : v1::NHWC;
  ForEachValue(tensor, layout, example, slot, slice,
               [&](int64_t y, int64_t x, int64_t c, uint8_t* place) {
                 const float value = example.At(y, x, c);
                 if (tensor.spec.dtype == DType::kBfloat16) {
                   const uint16_t half = RoundToBf16(value);
                   std::memcpy(place, &half, sizeof(half));
                 } else if (tensor.spec.dtype == DType::kFloat16) {
                   const uint16_t half = RoundToFloat16(value);
                   std::memcpy(place, &half, sizeof(half));
                 } else {
                   std::memcpy(place, &value, sizeof(value));
                 }
               });
}

// Mixes the example `own` with its partner as `draw` says, by plain code.
Example Mixed(const MixDraw& draw, bool image, Example own, Example partner) {
  const bool cut = draw.kind == Kind::kCutmix && image;
  for (int64_t y = 0; y < own.height; ++y) {
    for (int64_t x = 0; x < own.width; ++x) {
      for (int64_t c = 0; c < own.channels; ++c) {
        if (!cut) {
          own.At(y, x, c) =
              draw.own_share * own.At(y, x, c) + (1 - draw.own_share) * partner.At(y, x, c);
          continue;
        }
        const bool inside = y >= draw.box.y && y < draw.box.y + draw.box.height &&
                            x >= draw.box.x && x < draw.box.x + draw.box.width;
        if (inside) own.At(y, x, c) = partner.At(y, x, c);
      }
    }
  }
  return own;
}

// How many examples were mixed, and how many were not mixed because their partner is missing.
struct Counts {
  int mixed = 0;
  int alone = 0;
};

// Mixes the slices of an unmixed feed as `spec.mix()` says. In each slice, the output `id` says
// which record is in a slot, and the tensor `valid` says whether the slot is valid.
Counts MixPlainly(const v1::FeedSpec& spec, const Plan& unmixed, Slices& slices) {
  Counts counts;
  const v1::Mix& mix = spec.mix();
  const SliceLayout& layout = unmixed->layout();
  const auto& tensors = layout.tensors();
  const auto& outputs = spec.outputs();
  const auto is_in = [](const auto& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (auto& [place, slice] : slices) {
    const std::vector<uint8_t> before = slice;
    const uint8_t* valid = before.data() + tensors[layout.valid_index()].offset;
    for (int64_t slot = 0; slot < layout.per_core_batch(); ++slot) {
      const bool last = slot % mix.group() == mix.group() - 1;
      const int64_t partner = last ? slot + 1 - mix.group() : slot + 1;
      if (valid[slot] == 0) continue;
      if (valid[partner] == 0) {
        ++counts.alone;
        continue;
      }
      int64_t record = 0;
      std::memcpy(&record, before.data() + tensors[layout.IndexOf("id")].offset + slot * 8, 8);
      std::optional<MixDraws> draws;
      for (const v1::Output& output : outputs) {
        const bool image = is_in(mix.images(), output.name());
        if (!image && !is_in(mix.labels(), output.name())) continue;
        const SliceTensor& tensor = tensors[layout.IndexOf(output.name())];
        std::vector<uint8_t> source = before;
        Example own = Read(tensor, output, image, slot, source);
        Example other = Read(tensor, output, image, partner, source);
        if (!draws.has_value()) {
          // MixDraws needs the size of the images. The first output is an image.
          draws = *MixDraws::Create(mix, static_cast<int>(own.height), static_cast<int>(own.width));
        }
        const MixDraw draw = draws->Of({.seed = spec.seed(),
                                        .epoch = place.first / unmixed->order().steps_per_epoch(),
                                        .record = record});
        if (draw.kind == Kind::kNone) continue;
        if (&output == &outputs[0]) ++counts.mixed;
        Write(tensor, output, image, Mixed(draw, image, std::move(own), std::move(other)), slot,
              slice);
      }
    }
  }
  return counts;
}

v1::FeedSpec Unmixed(v1::FeedSpec spec) {
  spec.clear_mix();
  return spec;
}

// Three images in three layouts, two kinds of labels, and outputs that are not mixed.
std::string Outputs(int height, int width) {
  const std::string size = absl::StrCat("height: ", height, " width: ", width);
  return absl::StrCat(
      "outputs { name: 'a' feature: 'image' dtype: BFLOAT16 transforms { decode_jpeg {} } "
      "  transforms { random_resized_crop { ",
      size,
      " } } transforms { random_flip {} } "
      "  transforms { normalize { mean: [120, 115, 105] stddev: 60 } } } "
      "outputs { name: 'b' feature: 'image' dtype: FLOAT32 layout: NCHW "
      "  transforms { decode_jpeg {} } transforms { resize { ",
      size,
      " } } } "
      "outputs { name: 'c' feature: 'image' dtype: BFLOAT16 layout: HWCN "
      "  transforms { decode_jpeg { channels: 1 } } transforms { resize { ",
      size,
      " } } } "
      "outputs { name: 'one' feature: 'label' dtype: FLOAT32 "
      "  transforms { one_hot { depth: 5 } } } "
      "outputs { name: 'many' feature: 'pair' shape: 2 dtype: BFLOAT16 "
      "  transforms { one_hot { depth: 700 on_value: 0.9 off_value: 0.1 } } } "
      "outputs { name: 'raw' feature: 'raw' shape: 12 dtype: FLOAT32 "
      "  transforms { decode_raw {} } } "
      "outputs { name: 'id' feature: 'record_id' dtype: INT64 } ");
}

constexpr char kAll[] = " images: ['a', 'b', 'c'] labels: ['one', 'many'] ";

v1::FeedSpec MixSpec(const std::string& head, const std::string& mix, int height = 16,
                     int width = 12) {
  return SpecFromText(absl::StrCat("dataset: 'test' seed: 11 shuffle { mode: GLOBAL } ", head, " ",
                                   Outputs(height, width), "mix { ", mix, kAll, " }"));
}

// Makes a shard in which the records whose numbers are in `damaged` are no tf.train.Examples.
std::vector<std::string> ShardsWithDamage(int records, const std::vector<int>& damaged) {
  ShardBuilder builder;
  for (int i = 0; i < records; ++i) {
    const bool bad = std::find(damaged.begin(), damaged.end(), i) != damaged.end();
    builder.Add(bad ? "no example" : TestRecord(i));
  }
  return {builder.Build()};
}

TEST(GroupMixerTest, MixedFeedsMatchAPlainReferenceImplementation) {
  const auto dataset = OpenTestDataset(TestShards({9, 0, 15}));
  for (const char* const mix :
       {"group: 4 mixup {}", "group: 4 cutmix {}",
        "group: 6 mixup { alpha: 0.2 probability: 0.4 } cutmix {}",
        "group: 12 mixup { probability: 0.3 } cutmix { probability: 0.3 }"}) {
    for (const auto& [height, width] : {std::pair(16, 12), {3, 400}}) {
      SCOPED_TRACE(absl::StrCat(mix, " ", height, " x ", width));
      const v1::FeedSpec spec =
          MixSpec("global_batch: 24 num_cores: 2 epochs: 2 ", mix, height, width);
      const Plan unmixed = MakePlan(Unmixed(spec), dataset);
      Slices expected = DrainAll(unmixed);
      const Slices before = expected;
      EXPECT_GT(MixPlainly(spec, unmixed, expected).mixed, 10);
      EXPECT_NE(expected, before);
      EXPECT_TRUE(DrainAll(MakePlan(spec, dataset)) == expected);
    }
  }
}

// Random specs, with damaged and missing examples.
TEST(GroupMixerTest, RandomFeedsWithDamageMatchAPlainReferenceImplementation) {
  std::mt19937 random(1);  // Draws the same numbers on every machine.
  const auto below = [&](int count) { return static_cast<int>(random() % count); };
  Counts sum;
  for (int i = 0; i < (kSanitized ? 15 : 60); ++i) {
    const int group = 2 + below(7);
    const int cores = 1 + below(3);
    const int batch = cores * group * (1 + below(3));
    const int records = batch + below(30);
    std::vector<int> damaged;
    for (int record = 0; record < records; ++record) {
      if (below(5) == 0) damaged.push_back(record);
    }
    const bool pad = below(2) == 0;
    const std::string mix = absl::StrCat(
        "group: ", group, below(3) == 0 ? "" : " mixup { alpha: 0.3 probability: 0.5 } ",
        " cutmix { probability: ", below(2) == 0 ? 0.5 : 0.1, " }");
    // Sometimes the cores have different numbers of examples.
    const std::string numbers =
        absl::StrCat("global_batch: ", below(3) == 0 ? std::max(1, batch - below(group)) : batch,
                     " num_cores: ", cores, " split: ", below(2) == 0 ? "FILL" : "BALANCED",
                     " epochs: 2 tail: ", pad ? "PAD" : "DROP", " on_corrupt: MASK ");
    SCOPED_TRACE(absl::StrCat(numbers, mix, " of ", records));
    v1::FeedSpec spec = MixSpec(numbers, mix, 4 + below(8), 4 + below(8));
    for (int output = 0; output < 3; ++output) {
      spec.mutable_outputs(output)->set_layout(static_cast<v1::Layout>(below(3)));
      constexpr v1::DataType kTypes[] = {v1::FLOAT32, v1::BFLOAT16, v1::FLOAT16};
      spec.mutable_outputs(output)->set_dtype(kTypes[below(3)]);
    }
    const auto dataset = OpenTestDataset(ShardsWithDamage(records, damaged));
    const Plan unmixed = MakePlan(Unmixed(spec), dataset);
    if (unmixed->layout().per_core_batch() % group != 0) continue;  // `mix` is refused here.
    Slices expected = DrainAll(unmixed);
    const Counts counts = MixPlainly(spec, unmixed, expected);
    sum.mixed += counts.mixed;
    sum.alone += counts.alone;
    EXPECT_TRUE(DrainAll(MakePlan(spec, dataset), 1 + below(4)) == expected);
  }
  EXPECT_GT(sum.mixed, kSanitized ? 100 : 500);
  EXPECT_GT(sum.alone, kSanitized ? 20 : 100);
}

TEST(GroupMixerTest, MixingWritesEveryNanAsTheSameBits) {
  const absl::StatusOr<SliceLayout> layout =
      SliceLayout::Create({{.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {2}}},
                           {.spec = {.name = "x", .dtype = DType::kFloat32, .shape = {2, 2}}}});
  ASSERT_THAT(layout, IsOk());
  absl::StatusOr<MixDraws> draws = MixDraws::Create(SpecFromText("mix { mixup {} }").mix(), 1, 1);
  ASSERT_THAT(draws, IsOk());
  const MixPlan plan = {
      .group = 2, .draws = *std::move(draws), .tensors = {{.tensor = 1, .row_elements = 2}}};
  std::vector<uint8_t> slice(static_cast<size_t>(layout->slice_bytes()));
  const auto x = [&] {
    return absl::MakeSpan(reinterpret_cast<uint32_t*>(slice.data() + layout->tensors()[1].offset),
                          4);
  };
  // The first value is infinity, and is mixed with minus infinity. The sign of the NaN that results
  // depends on the processor. The second value is a NaN with a payload, and is mixed with 1.
  const uint32_t values[] = {0x7f800000, 0xffc12345, 0xff800000, 0x3f800000};
  std::copy(std::begin(values), std::end(values), x().begin());
  const MixDraw half = {.kind = MixDraw::Kind::kMixup, .own_share = 0.5f};
  MixGroup(plan, *layout, 0, {half, half}, slice.data());
  EXPECT_THAT(x(), testing::Each(0x7fc00000u));
}

TEST(GroupMixerTest, MixedLabelsOfAnExampleSumToOne) {
  const auto dataset = OpenTestDataset(TestShards({24}));
  const Plan plan = MakePlan(
      MixSpec("global_batch: 24 num_cores: 1 epochs: 1", "group: 8 mixup {} cutmix {}"), dataset);
  const Slices slices = DrainAll(plan);
  const TensorView one =
      plan->layout().View(plan->layout().IndexOf("one"), slices.begin()->second.data());
  int mixed = 0;
  for (size_t example = 0; example < 24; ++example) {
    float sum = 0;
    float most = 0;
    for (size_t i = 0; i < 5; ++i) {
      sum += one.As<float>()[example * 5 + i];
      most = std::max(most, one.As<float>()[example * 5 + i]);
    }
    EXPECT_FLOAT_EQ(sum, 1);
    if (most < 1) ++mixed;
  }
  EXPECT_GT(mixed, 10);
}

TEST(GroupMixerTest, BytesDoNotDependOnThreadsNorOnWhereAStreamBegins) {
  const auto dataset = OpenTestDataset(TestShards({20, 31}));
  const Plan plan = MakePlan(
      MixSpec("global_batch: 24 num_cores: 2 epochs: 3 tail: PAD", "group: 3 mixup {} cutmix {}"),
      dataset);
  const Slices one = DrainAll(plan, 1);
  EXPECT_EQ(one.size(), 3u * 3u * 2u);
  EXPECT_TRUE(DrainAll(plan, 3) == one);
  for (int64_t step = 0; step < 9; ++step) {
    for (int core = 0; core < 2; ++core) {
      const Slices alone = Drain(
          plan, 3, {.first_step = step, .count = 1, .core_begin = core, .core_end = core + 1});
      EXPECT_TRUE(alone.at({step, core}) == one.at({step, core})) << step << " " << core;
    }
  }
}

TEST(GroupMixerTest, AnExampleDoesNotDependOnTheNumberOfCores) {
  const auto dataset = OpenTestDataset(TestShards({50}));
  const auto examples = [&](int cores) {
    const Plan plan =
        MakePlan(MixSpec(absl::StrCat("global_batch: 24 epochs: 2 tail: PAD num_cores: ", cores),
                         "group: 4 mixup {} cutmix {}"),
                 dataset);
    std::map<std::pair<int64_t, int64_t>, std::string> digests;  // By step and slot of the batch.
    for (const auto& [place, slice] : DrainAll(plan)) {
      const int64_t batch = plan->layout().per_core_batch();
      for (int64_t slot = 0; slot < batch; ++slot) {
        digests[{place.first, place.second * batch + slot}] =
            ExampleDigest(plan->layout(), slot, slice.data());
      }
    }
    return digests;
  };
  const auto one = examples(1);
  EXPECT_EQ(one.size(), 2u * 3u * 24u);
  EXPECT_EQ(examples(2), one);
  EXPECT_EQ(examples(6), one);
}

TEST(GroupMixerTest, AMaskedExampleLeavesOnlyThePreviousExampleOfItsGroupUnmixed) {
  constexpr int kDamaged = 13;
  const v1::FeedSpec spec = MixSpec("global_batch: 20 num_cores: 2 epochs: 2 on_corrupt: MASK",
                                    "group: 5 mixup {} cutmix {}");
  const Plan good = MakePlan(spec, OpenTestDataset(ShardsWithDamage(20, {})));
  const Plan damaged = MakePlan(spec, OpenTestDataset(ShardsWithDamage(20, {kDamaged})));
  const Plan unmixed = MakePlan(Unmixed(spec), OpenTestDataset(ShardsWithDamage(20, {})));
  const Slices whole = DrainAll(good);
  const Slices plain = DrainAll(unmixed);
  const SliceLayout& layout = good->layout();
  int masked = 0, alone = 0;
  for (const auto& [place, slice] : DrainAll(damaged)) {
    const uint8_t* valid =
        slice.data() + layout.tensors()[static_cast<size_t>(layout.valid_index())].offset;
    for (int64_t slot = 0; slot < 10; ++slot) {
      if (valid[slot] == 0) {
        ++masked;
        continue;
      }
      const int64_t partner = slot % 5 == 4 ? slot - 4 : slot + 1;
      const bool is_alone = valid[partner] == 0;
      if (is_alone) ++alone;
      EXPECT_EQ(ExampleDigest(layout, slot, slice.data()),
                ExampleDigest(layout, slot, (is_alone ? plain : whole).at(place).data()));
    }
  }
  EXPECT_EQ(masked, 2);
  EXPECT_EQ(alone, 2);
}

// A group may have a billion values. So while a thread mixes a group, it checks now and then
// whether the group is still wanted.
TEST(GroupMixerTest, MixGroupLeavesTheSliceUnchangedIfAlreadyInterrupted) {
  const Plan plan = MakePlan(MixSpec("global_batch: 10 num_cores: 1", "group: 5 mixup {}"),
                             OpenTestDataset(TestShards({10})));
  const std::vector<MixDraw> draws(5, {.kind = Kind::kMixup, .own_share = 0.5});
  const auto bytes = static_cast<size_t>(plan->layout().slice_bytes());
  std::vector<uint8_t> slice(bytes);
  for (size_t i = 0; i < bytes; ++i) slice[i] = static_cast<uint8_t>(i % 61);
  const std::vector<uint8_t> before = slice;
  {
    InterruptFlag unwanted;
    unwanted.Raise();
    const InterruptScope scope(unwanted);
    MixGroup(*plan->mix(), plan->layout(), 0, draws, slice.data());
  }
  EXPECT_TRUE(slice == before);
  MixGroup(*plan->mix(), plan->layout(), 0, draws, slice.data());
  EXPECT_FALSE(slice == before);
}

TEST(GroupMixerTest, ADamagedRecordFailsAMixedFeedAsItFailsTheUnmixedFeed) {
  const v1::FeedSpec spec = MixSpec("global_batch: 10 num_cores: 1", "group: 5 mixup {}");
  const auto dataset = OpenTestDataset(ShardsWithDamage(10, {3}));
  StepEngine engine({.threads = 2});
  const auto error_of = [&](const v1::FeedSpec& of_feed) {
    absl::StatusOr<std::unique_ptr<StepStream>> stream =
        engine.Open(MakePlan(of_feed, dataset), {.count = 1});
    if (!stream.ok()) return stream.status();
    const absl::Status error = (*stream)->Next().status();
    // The result shares no memory with the stream: TSan does not see how Debian's abseil, which is
    // not instrumented, counts the users of an error.
    return absl::Status(error.code(), error.message());
  };
  const absl::Status error = error_of(spec);
  EXPECT_THAT(error, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("record 3")));
  EXPECT_EQ(error, error_of(Unmixed(spec)));
}

}  // namespace
}  // namespace systole
