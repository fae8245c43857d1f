// Tests which values of a feed's `mix` are accepted, and the errors for all others.
#include "core/plan/mix_plan.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/example/example_builder.h"
#include "core/plan/feed_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

// Outputs of many kinds. A `mix` can list `image`, `planes` and `small` as images, and `one` and
// `weight` as labels.
constexpr char kOutputs[] = R"pb(
  outputs {
    name: "image"
    feature: "image"
    transforms { decode_jpeg {} }
    transforms { resize { height: 4 width: 6 } }
    dtype: BFLOAT16
  }
  outputs {
    name: "planes"
    feature: "image"
    transforms { decode_jpeg {} }
    transforms { resize { height: 4 width: 6 } }
    dtype: FLOAT32
    layout: NCHW
  }
  outputs {
    name: "small"
    feature: "image"
    transforms { decode_jpeg {} }
    transforms { resize { height: 4 width: 4 } }
    dtype: FLOAT32
  }
  outputs {
    name: "uint8"
    feature: "image"
    transforms { decode_jpeg {} }
    transforms { resize { height: 4 width: 6 } }
    dtype: UINT8
  }
  outputs {
    name: "one"
    feature: "label"
    transforms { one_hot { depth: 5 } }
    dtype: FLOAT32
  }
  outputs { name: "weight" feature: "weight" dtype: FLOAT32 }
  outputs { name: "class" feature: "label" dtype: INT64 }
  outputs {
    name: "list"
    feature: "path"
    padded { length: 4 }
    dtype: FLOAT32
  }
)pb";

constexpr char kHead[] = "global_batch: 12 num_cores: 2";

// `rest` is the part of the spec that comes after the outputs.
absl::StatusOr<std::shared_ptr<const FeedPlan>> PlanOf(const std::string& rest,
                                                       const std::string& head = kHead) {
  static const auto* const dataset =
      new std::shared_ptr<const Dataset>(OpenTestDataset(TestShards({12})));
  return FeedPlan::Create(SpecFromText(absl::StrCat("dataset: 'test' ", head, kOutputs, rest)),
                          *dataset);
}

absl::StatusOr<std::shared_ptr<const FeedPlan>> Plan(const std::string& mix,
                                                     const std::string& head = kHead) {
  return PlanOf(absl::StrCat(" mix { ", mix, " }"), head);
}

TEST(MixPlanTest, ValidMixesAreAccepted) {
  for (const char* const mix :
       {"group: 2 images: 'image' labels: 'one' mixup {}",
        "group: 3 images: ['image', 'planes'] labels: ['one', 'weight'] mixup {} cutmix {}",
        "group: 6 images: 'small' cutmix { alpha: 1000 }"}) {
    EXPECT_THAT(Plan(mix), IsOk()) << mix;
  }
  const auto plan = Plan("group: 3 images: 'image' mixup {}");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ((*plan)->group(), 3);
  EXPECT_EQ((*Plan("group: 6 images: 'image' mixup {}"))->group(), 6);
}

TEST(MixPlanTest, InvalidMixesAreRefusedByField) {
  const std::pair<std::string, std::string> cases[] = {
      {"images: 'image' mixup {}", "mix.group is 0, want 2 to 256"},
      {"group: 1 images: 'image' mixup {}", "mix.group is 1, want 2 to 256"},
      {"group: -2 images: 'image' mixup {}", "mix.group is -2, want 2 to 256"},
      {"group: 257 images: 'image' mixup {}", "mix.group is 257, want 2 to 256"},
      {"group: 4 images: 'image' mixup {}",
       "mix.group is 4 and a core gets 6 examples of a step; want a group that divides this "
       "number"},
      {"group: 12 images: 'image' mixup {}", "mix.group is 12 and a core gets 6"},
      {"group: 2 mixup {}", "mix.images is empty"},
      {"group: 2 labels: 'one' mixup {}", "mix.images is empty"},
      {"group: 2 images: 'image'", "mix has neither mixup nor cutmix"},
      {"group: 2 images: 'x' mixup {}", "mix.images[0] is 'x'; the spec has no such output"},
      {"group: 2 images: 'image' labels: ['one', 'valid'] mixup {}",
       "mix.labels[1] is 'valid'; the spec has no such output"},
      {"group: 2 images: ['image', 'image'] mixup {}",
       "mix.images[1] is 'image', which is already listed"},
      {"group: 2 images: 'image' labels: 'image' mixup {}",
       "mix.labels[0] is 'image', which is already listed"},
      {"group: 2 images: 'uint8' mixup {}",
       "mix.images[0] is 'uint8', an output of uint8; want FLOAT32, BFLOAT16 or FLOAT16"},
      {"group: 2 images: 'image' labels: 'class' mixup {}",
       "mix.labels[0] is 'class', an output of int64; want FLOAT32, BFLOAT16 or FLOAT16"},
      {"group: 2 images: 'one' mixup {}",
       "mix.images[0] is 'one' of shape [5], want [height, width, channels]"},
      {"group: 2 images: 'weight' mixup {}", "mix.images[0] is 'weight' of shape []"},
      {"group: 2 images: ['image', 'small'] mixup {}",
       "mix.images[1] is 'small' of 4 x 4 pixels, 'image' has 4 x 6; want the same height and "
       "width"},
      {"group: 2 images: 'image' labels: 'list' mixup {}",
       "mix.labels[0] is 'list', which is padded"},
      {"group: 2 images: 'image' mixup { alpha: -3 }", "mix.mixup.alpha is -3"},
      {"group: 2 images: 'image\\n' mixup {}", "mix.images[0] is 'image\\n';"}};
  for (const auto& [mix, message] : cases) {
    EXPECT_THAT(Plan(mix), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message))) << mix;
  }
}

TEST(MixPlanTest, TheGroupMustDivideThePlacesOfACoreForEverySplit) {
  const std::string mix = "group: 4 images: 'image' mixup {}";
  for (const char* const split : {"split: BALANCED", "split: FILL"}) {
    // The global batch is divided by the 3 cores, rounded up. 11 examples give each core 4 places,
    // and 7 examples give each core 3 places.
    EXPECT_THAT(Plan(mix, absl::StrCat("global_batch: 11 num_cores: 3 ", split)), IsOk());
    EXPECT_THAT(Plan(mix, absl::StrCat("global_batch: 7 num_cores: 3 ", split)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a core gets 3 examples")));
  }
}

TEST(MixPlanTest, AMixChangesTheSpecFingerprintButNotTheOrderFingerprint) {
  const auto plain = PlanOf("");
  const auto mixed = Plan("group: 2 images: 'image' mixup {}");
  const auto cut = Plan("group: 2 images: 'image' cutmix {}");
  ASSERT_THAT(plain, IsOk());
  ASSERT_THAT(mixed, IsOk());
  ASSERT_THAT(cut, IsOk());
  EXPECT_NE((*mixed)->fingerprint(), (*plain)->fingerprint());
  EXPECT_NE((*cut)->fingerprint(), (*plain)->fingerprint());
  EXPECT_NE((*mixed)->fingerprint(), (*cut)->fingerprint());
  EXPECT_EQ((*mixed)->order_fingerprint(), (*plain)->order_fingerprint());
  EXPECT_EQ((*cut)->order_fingerprint(), (*plain)->order_fingerprint());
}

TEST(MixPlanTest, ImagesToMixHaveAtMost65536PixelsASide) {
  for (const int side : {65536, 65537}) {
    ShardBuilder builder;
    for (int i = 0; i < 2; ++i) {
      const std::vector<float> values(static_cast<size_t>(side), 1.0f);
      builder.Add(ExampleBuilder().AddFloats("long", values).Serialize());
    }
    const auto plan = FeedPlan::Create(
        SpecFromText(absl::StrCat(
            "dataset: 'test' global_batch: 2 num_cores: 1 outputs { name: 'x' feature: 'long' "
            "dtype: FLOAT32 shape: [1, ",
            side, ", 1] } mix { group: 2 images: 'x' mixup {} }")),
        OpenTestDataset({builder.Build()}));
    if (side == 65536) {
      EXPECT_THAT(plan, IsOk());
    } else {
      EXPECT_THAT(plan, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("mix.images[0] is 'x' of 1 x 65537 pixels, want at "
                                           "most 65536 a side")));
    }
  }
}

}  // namespace
}  // namespace systole
