// Feeds of files that TensorFlow wrote (tests/core/engine/data/README.md), served without any
// change.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/dataset/dataset.h"
#include "core/engine/step_engine.h"
#include "core/plan/feed_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;

constexpr char kFolder[] = "tests/core/engine/data/";  // Tests run in the top folder of the tree.

// The only slice of a feed of one step on one core.
SlicePtr FeedOne(const std::string& shard, const std::string& spec) {
  const TempFolder indexes;  // Keeps index files out of the source tree.
  absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Open("test", {absl::StrCat(kFolder, shard)}, {.index_dir = indexes.path()});
  EXPECT_THAT(dataset, IsOk());
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText(absl::StrCat("dataset: 'test' num_cores: 1 epochs: 1 ", spec)), *dataset);
  EXPECT_THAT(plan, IsOk());
  StepEngine engine({.threads = 1});
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(*plan, {});
  EXPECT_THAT(stream, IsOk());
  StepStream::Result slice = (*stream)->Next();
  EXPECT_THAT(slice, IsOk());
  return **slice;
}

TEST(TensorFlowShardsTest, ExamplesWrittenByTensorFlowAreServed) {
  const SlicePtr slice = FeedOne("tensorflow-images.tfrecord", R"pb(
    global_batch: 5
    outputs { name: "label" feature: "image/class/label" dtype: INT64 }
    outputs { name: "xmin" feature: "image/object/bbox/xmin" dtype: FLOAT32 }
  )pb");
  const SliceLayout& layout = slice->layout();
  EXPECT_THAT(layout.View(layout.IndexOf("label"), slice->data()).As<int64_t>(),
              ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(layout.View(layout.IndexOf("xmin"), slice->data()).As<float>(),
              ElementsAre(0, 0.25, 0.5, 0.75, 1));
  EXPECT_THAT(layout.View(layout.valid_index(), slice->data()).As<uint8_t>(),
              ElementsAre(1, 1, 1, 1, 1));
}

TEST(TensorFlowShardsTest, DecodeAndResizeEqualTensorFlowToTheLastBit) {
  const SlicePtr slice = FeedOne("tensorflow-images.tfrecord", R"pb(
    global_batch: 5
    outputs {
      name: "image"
      feature: "image/encoded"
      transforms { decode_jpeg {} }
      transforms { resize { height: 20 width: 24 } }
      dtype: FLOAT32
    }
  )pb");
  const absl::Span<const uint8_t> ours = slice->layout().View(0, slice->data()).bytes();
  const std::string theirs = ReadWholeFile(absl::StrCat(kFolder, "tensorflow-resized.f32"));
  ASSERT_EQ(ours.size(), theirs.size());
  EXPECT_EQ(std::memcmp(ours.data(), theirs.data(), theirs.size()), 0);
}

TEST(TensorFlowShardsTest, RecordsThatAreNoExamplesAreServedWhole) {
  const SlicePtr slice = FeedOne("tensorflow-raw.tfrecord", R"pb(
    global_batch: 6
    outputs {
      name: "bytes"
      feature: "record"
      transforms { decode_raw {} }
      shape: 784
      dtype: UINT8
    }
  )pb");
  const absl::Span<const uint8_t> bytes = slice->layout().View(0, slice->data()).bytes();
  ASSERT_EQ(bytes.size(), 6u * 784u);
  for (size_t i = 0; i < bytes.size(); ++i) {
    ASSERT_EQ(bytes[i], (i / 784 * 37 + i % 784 * 11) % 256) << i;
  }
}

}  // namespace
}  // namespace systole
