// Compares feeds in layout HWCN_TILED with the same feeds in layout HWCN.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/engine/step_engine.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr int kCores = 2;
constexpr int64_t kSteps = 6;

// Opens a dataset of 23 records, so in the last step of each epoch some places are empty. A record
// in the middle of the second shard is damaged.
std::shared_ptr<Dataset> DamagedDataset() {
  std::vector<std::string> shards = TestShards({9, 6, 8});
  shards[1] = WithFlippedBit(std::move(shards[1]), 8 * shards[1].size() / 2);
  return OpenTestDataset(shards);
}

std::shared_ptr<const FeedPlan> PlanIn(const std::string& layout, int global_batch,
                                       const std::shared_ptr<Dataset>& dataset) {
  const std::string end = absl::StrCat("dtype: BFLOAT16 layout: ", layout, " }");
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText(absl::StrCat(
          "dataset: 'test' seed: 3 shuffle { mode: GLOBAL } tail: PAD on_corrupt: MASK "
          "split: BALANCED epochs: 2 num_cores: ",
          kCores, " global_batch: ", global_batch,
          " outputs { name: 'grey' feature: 'image' transforms { decode_jpeg { channels: 1 } } "
          "transforms { resize { height: 3 width: 5 } } ",
          end,
          " outputs { name: 'image' feature: 'image' transforms { decode_jpeg {} } "
          "transforms { random_resized_crop { height: 6 width: 4 } } transforms { random_flip {} } "
          "transforms { normalize { mean: [1, 2, 3] stddev: 64 } } ",
          end,
          " outputs { name: 'deep' feature: 'raw' shape: [1, 1, 12] transforms { decode_raw {} }",
          "transforms { normalize { mean: 0.5 } } ", end)),
      dataset);
  EXPECT_THAT(plan, IsOk());
  return *plan;
}

struct Slice {
  std::string digest;
  std::vector<std::string> examples;  // The digest of each example.
  std::vector<uint8_t> bytes;
};

// All slices of the plan. The key is (step, core).
std::map<std::pair<int64_t, int>, Slice> SlicesOf(const std::shared_ptr<const FeedPlan>& plan,
                                                  int threads) {
  StepEngine engine({.threads = threads, .max_threads = threads});
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(plan, {.count = kSteps, .core_end = kCores});
  EXPECT_THAT(stream, IsOk());
  std::map<std::pair<int64_t, int>, Slice> slices;
  while (true) {
    StepStream::Result next = (*stream)->Next();
    EXPECT_THAT(next, IsOk());
    if (!next.ok() || !next->has_value()) return slices;
    const CoreSlice& made = ***next;
    const SliceLayout& layout = made.layout();
    Slice& slice = slices[{made.step(), made.core()}];
    slice.digest = SliceDigest(layout, made.data());
    for (int64_t slot = 0; slot < layout.per_core_batch(); ++slot) {
      slice.examples.push_back(ExampleDigest(layout, slot, made.data()));
    }
    slice.bytes.assign(made.data(), made.data() + layout.slice_bytes());
  }
}

// Makes tiles of the tensor `plain`, whose shape is [height, width, channels, batch]. Places of a
// tile that get no value are 0.
std::vector<uint16_t> TilesOf(const SliceTensor& plain, const uint8_t* slice) {
  const std::vector<int64_t>& shape = plain.spec.shape;
  const int64_t tiles_c = (shape[2] + 7) / 8;
  const int64_t tiles_n = (shape[3] + 127) / 128;
  const auto* const values = reinterpret_cast<const uint16_t*>(slice + plain.offset);
  std::vector<uint16_t> tiles(
      static_cast<size_t>(shape[0] * shape[1] * tiles_c * tiles_n * 8 * 128));
  for (int64_t pixel = 0; pixel < shape[0] * shape[1]; ++pixel) {
    for (int64_t c = 0; c < shape[2]; ++c) {
      for (int64_t n = 0; n < shape[3]; ++n) {
        const int64_t tile = (pixel * tiles_c + c / 8) * tiles_n + n / 128;
        tiles[static_cast<size_t>(((tile * 4 + c % 8 / 2) * 128 + n % 128) * 2 + c % 2)] =
            values[(pixel * shape[2] + c) * shape[3] + n];
      }
    }
  }
  return tiles;
}

// A core's batch fills a part of a tile, one whole tile, or more than one tile. Some places are
// masked or padded. The cores may get different numbers of examples.
TEST(TiledFeedTest, TiledTensorsHoldTheHwcnValuesPaddedWithZeros) {
  const std::shared_ptr<Dataset> dataset = DamagedDataset();
  for (const int global_batch : {7, 256, 259}) {
    SCOPED_TRACE(global_batch);
    const std::shared_ptr<const FeedPlan> tiled = PlanIn("HWCN_TILED", global_batch, dataset);
    const std::shared_ptr<const FeedPlan> plain = PlanIn("HWCN", global_batch, dataset);
    const auto in_tiles = SlicesOf(tiled, 2);
    const auto in_hwcn = SlicesOf(plain, 2);
    ASSERT_EQ(in_tiles.size(), in_hwcn.size());
    ASSERT_GT(in_tiles.size(), 2);
    for (const auto& [place, slice] : in_tiles) {
      const Slice& want = in_hwcn.at(place);
      EXPECT_EQ(slice.examples, want.examples);
      for (const char* name : {"grey", "image", "deep"}) {
        const SliceTensor& tensor =
            tiled->layout().tensors()[static_cast<size_t>(tiled->layout().IndexOf(name))];
        const SliceTensor& from =
            plain->layout().tensors()[static_cast<size_t>(plain->layout().IndexOf(name))];
        EXPECT_EQ(tensor.untiled_shape, from.spec.shape);
        EXPECT_EQ(tensor.useful_bytes(), from.spec.num_bytes());
        const auto* const got =
            reinterpret_cast<const uint16_t*>(slice.bytes.data() + tensor.offset);
        EXPECT_EQ(std::vector<uint16_t>(got, got + tensor.spec.num_elements()),
                  TilesOf(from, want.bytes.data()))
            << name << " of step " << place.first << ", core " << place.second;
      }
    }
  }
}

TEST(TiledFeedTest, DigestsDoNotDependOnThreads) {
  const std::shared_ptr<const FeedPlan> plan = PlanIn("HWCN_TILED", 7, DamagedDataset());
  const auto one = SlicesOf(plan, 1);
  const auto four = SlicesOf(plan, 4);
  ASSERT_EQ(one.size(), four.size());
  for (const auto& [place, slice] : one) EXPECT_EQ(slice.digest, four.at(place).digest);
}

}  // namespace
}  // namespace systole
