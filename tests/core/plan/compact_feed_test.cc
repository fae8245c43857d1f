#include "core/plan/compact_feed.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/dataset/dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kThree[] = "transforms { normalize { mean: [1, 2, 3] } } ";
constexpr char kPixels[] = "feature: 'raw' shape: [2, 2, 3] transforms { decode_raw {} } ";

class CompactFeedTest : public testing::Test {
 protected:
  struct Feed {
    std::shared_ptr<const FeedPlan> plan;
    std::optional<CompactFeed> compact;

    const std::optional<CompactTensor>& TensorOf(const std::string& name) const {
      return compact->tensors[static_cast<size_t>(plan->layout().IndexOf(name))];
    }
    std::vector<std::string> CompactNames() const {
      std::vector<std::string> names;
      for (const SliceTensor& tensor : plan->layout().tensors()) {
        if (compact.has_value() && TensorOf(tensor.spec.name).has_value()) {
          names.push_back(tensor.spec.name);
        }
      }
      return names;
    }
  };

  Feed FeedOf(const std::string& rest) const {
    const absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
        SpecFromText(absl::StrCat("dataset: 'test' seed: 3 global_batch: 4 num_cores: 2 ", rest)),
        dataset_);
    EXPECT_THAT(plan, IsOk());
    if (!plan.ok()) return {};
    return {.plan = *plan, .compact = CompactFeedOf(**plan, dataset_)};
  }

  const std::shared_ptr<Dataset> dataset_ = OpenTestDataset(TestShards({3, 4}));
};

TEST_F(CompactFeedTest, TensorsWithACompactFormBecomeUint8AndTheRestStays) {
  const Feed feed = FeedOf(absl::StrCat("outputs { name: 'x' ", kPixels, kThree,
                                        "dtype: BFLOAT16 } outputs { name: 'label' feature: "
                                        "'label' }"));
  ASSERT_TRUE(feed.compact.has_value());
  EXPECT_THAT(feed.CompactNames(), ElementsAre("x"));
  std::vector<std::string> tensors;
  for (const SliceTensor& tensor : feed.compact->plan->layout().tensors()) {
    tensors.push_back(tensor.spec.DebugString());
  }
  EXPECT_THAT(tensors, ElementsAre("label int64[2]", "valid uint8[2]", "x uint8[2,2,2,3]"));
  const v1::Output& output = feed.compact->plan->spec().outputs(0);
  EXPECT_EQ(output.transforms_size(), 1);
  EXPECT_EQ(feed.compact->plan->order_fingerprint(), feed.plan->order_fingerprint());
  // The compact form of the feed has a plan of its own, so that it shares no slices with the plain
  // form.
  EXPECT_NE(feed.compact->plan, feed.plan);
}

TEST_F(CompactFeedTest, ChannelAxisFollowsTheLayout) {
  for (const auto& [layout, axis] :
       {std::pair("NHWC", 3), std::pair("NCHW", 1), std::pair("HWCN", 2)}) {
    const Feed feed = FeedOf(absl::StrCat("outputs { name: 'x' ", kPixels, kThree,
                                          "layout: ", layout, " } outputs { name: 'one' ", kPixels,
                                          "dtype: FLOAT16 layout: ", layout, " }"));
    EXPECT_THAT(feed.CompactNames(), ElementsAre("one", "x"));
    EXPECT_EQ(feed.TensorOf("x")->channel_axis, axis) << layout;
    EXPECT_EQ(feed.TensorOf("one")->channel_axis, 0) << layout;
    const SliceTensor& x =
        feed.plan->layout().tensors()[static_cast<size_t>(feed.plan->layout().IndexOf("x"))];
    EXPECT_EQ(x.spec.shape[static_cast<size_t>(axis)], 3);
  }
  const Feed flat = FeedOf(
      "outputs { name: 'x' feature: 'raw' shape: [4, 3] transforms { decode_raw {} } transforms { "
      "normalize { mean: [1, 2, 3] } } }");
  EXPECT_EQ(flat.TensorOf("x")->channel_axis, 2);
}

TEST_F(CompactFeedTest, OnlyOutputsMadeFromUint8ValuesAreCompact) {
  const Feed feed = FeedOf(
      "outputs { name: 'numbers' feature: 'pair' shape: 2 transforms { cast { dtype: UINT8 } } "
      "transforms { normalize {} } } "
      "outputs { name: 'rounded' feature: 'path' shape: 3 transforms { round_to_uint8 {} } "
      "transforms { gamma { gamma_min: 2 gamma_max: 2 } } dtype: FLOAT32 } "
      "outputs { name: 'floats' feature: 'path' shape: 3 transforms { normalize {} } }");
  EXPECT_THAT(feed.CompactNames(), ElementsAre("numbers", "rounded"));
}

TEST_F(CompactFeedTest, MixedTiledAndPaddedOutputsHaveNoCompactForm) {
  EXPECT_THAT(
      FeedOf(absl::StrCat("mix { group: 2 images: 'x' labels: 'l' mixup {} } "
                          "outputs { name: 'x' ",
                          kPixels, "dtype: FLOAT32 } outputs { name: 'l' ", kPixels,
                          "dtype: FLOAT32 } outputs { name: 'y' ", kPixels, "dtype: FLOAT32 }"))
          .CompactNames(),
      ElementsAre("y"));
  EXPECT_THAT(
      FeedOf(absl::StrCat("outputs { name: 'x' ", kPixels, "dtype: BFLOAT16 layout: HWCN_TILED }"))
          .CompactNames(),
      IsEmpty());
  EXPECT_THAT(FeedOf("outputs { name: 'x' feature: 'pair' padded { length: 3 } }").CompactNames(),
              IsEmpty());
  EXPECT_THAT(FeedOf(AllOutputs()).CompactNames(), IsEmpty());
}

TEST_F(CompactFeedTest, CompactAndPlainFeedsCacheTheSameValues) {
  // The client could clip. But the cache keeps clipped pixels, so the server clips.
  const Feed feed =
      FeedOf(absl::StrCat("outputs { name: 'x' cache: MEMORY ", kPixels,
                          "transforms { clip_by_value { min: 3 max: 9 } } ", kThree, "}"));
  ASSERT_TRUE(feed.compact.has_value());
  EXPECT_EQ(feed.compact->plan->spec().outputs(0).transforms_size(), 2);
  ASSERT_TRUE(feed.plan->outputs()[0].cache.has_value());
  ASSERT_TRUE(feed.compact->plan->outputs()[0].cache.has_value());
  ASSERT_EQ(feed.plan->outputs()[0].cache->forms.size(), 1u);
  ASSERT_EQ(feed.compact->plan->outputs()[0].cache->forms.size(), 1u);
  EXPECT_EQ(feed.compact->plan->outputs()[0].cache->forms[0].made_by,
            feed.plan->outputs()[0].cache->forms[0].made_by);
}

}  // namespace
}  // namespace systole
