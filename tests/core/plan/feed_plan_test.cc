#include "core/plan/feed_plan.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/dataset/dataset.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FeedPlanTest : public testing::Test {
 protected:
  absl::StatusOr<std::shared_ptr<const FeedPlan>> Plan(const std::string& spec) const {
    return FeedPlan::Create(SpecFromText(spec), dataset_);
  }
  // Expects that a spec whose only output is `output` is refused with `message`.
  void RefusesOutput(const std::string& output, const std::string& message) const {
    EXPECT_THAT(
        Plan(absl::StrCat("dataset: 'test' global_batch: 4 num_cores: 2 outputs {", output, "}")),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << output;
  }
  void Refuses(const std::string& spec, const std::string& message) const {
    EXPECT_THAT(Plan(spec), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << spec;
  }

  const std::shared_ptr<Dataset> dataset_ = OpenTestDataset(TestShards({3, 0, 4}));
};

TEST_F(FeedPlanTest, TensorShapesHaveTheBatchAxisOfTheirLayout) {
  const auto plan =
      Plan(absl::StrCat("dataset: 'test' global_batch: 6 num_cores: 2 ", AllOutputs()));
  ASSERT_THAT(plan, IsOk());
  const SliceLayout& layout = (*plan)->layout();
  std::vector<std::string> tensors;
  for (const SliceTensor& tensor : layout.tensors()) tensors.push_back(tensor.spec.DebugString());
  EXPECT_THAT(tensors, ElementsAre("center uint8[8,8,3,3]", "id int64[3]",
                                   "image bfloat16[3,16,16,3]", "label int32[3]", "pair int64[3,2]",
                                   "path bfloat16[3,3]", "raw uint8[3,12]", "valid uint8[3]",
                                   "weight float32[3]", "whole float32[3,1,8,6]"));
  EXPECT_EQ(layout.tensors()[0].batch_axis, 3);
  EXPECT_EQ((*plan)->order().steps_per_epoch(), 1);
}

TEST_F(FeedPlanTest, FingerprintIgnoresOutputOrderAndWrittenOutDefaults) {
  const std::string head = "dataset: 'test' global_batch: 4 num_cores: 2 ";
  const std::string label = "outputs { name: 'a' feature: 'label' dtype: INT64 }";
  const auto output = [](const std::string& channels) {
    return absl::StrCat(
        "outputs { name: 'b' feature: 'image' dtype: UINT8 transforms { decode_jpeg {", channels,
        "} } transforms { center_crop { height: 8 width: 8 } } }");
  };
  const auto one = Plan(head + label + output(""));
  const auto other = Plan(head + output("channels: 3") + label + "shuffle { mode: NONE }");
  const auto grey = Plan(head + label + output("channels: 1"));
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(other, IsOk());
  ASSERT_THAT(grey, IsOk());
  EXPECT_EQ((*one)->fingerprint(), (*other)->fingerprint());
  EXPECT_NE((*one)->fingerprint(), (*grey)->fingerprint());
}

TEST_F(FeedPlanTest, EqualWeightChangesByStepAndByExampleHaveEqualFingerprints) {
  const std::shared_ptr<Dataset> one = OpenTestDataset(TestShards({7}));
  const absl::StatusOr<std::shared_ptr<const Dataset>> dataset = Dataset::Join({one, one});
  ASSERT_THAT(dataset, IsOk());
  const auto plan = [&](const std::string& text) {
    const absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
        SpecFromText("mixture { dataset: 'test' weight: 1 } mixture { dataset: 'test' weight: 2 } "
                     "global_batch: 4 outputs { name: 'a' feature: 'label' dtype: INT64 } " +
                     text),
        *dataset);
    EXPECT_THAT(plan, IsOk());
    return *plan;
  };
  // With PAD an epoch of 14 examples has four steps, so step 6 begins at example 14 + 2 * 4. With
  // DROP step 6 begins at example 6 * 4.
  for (const auto& [tail, example] : {std::pair("tail: PAD ", 22), std::pair("tail: DROP ", 24)}) {
    const auto by_step = plan(absl::StrCat(tail, "weights { from_step: 6 weights: [1, 1] }"));
    const auto by_example =
        plan(absl::StrCat(tail, "weights { from_example: ", example, " weights: [1, 1] }"));
    const auto later =
        plan(absl::StrCat(tail, "weights { from_example: ", example + 1, " weights: [1, 1] }"));
    EXPECT_EQ(by_example->order_fingerprint(), by_step->order_fingerprint());
    EXPECT_EQ(by_example->fingerprint(), by_step->fingerprint());
    EXPECT_NE(later->order_fingerprint(), by_step->order_fingerprint());
    EXPECT_NE(later->fingerprint(), by_step->fingerprint());
  }
}

TEST_F(FeedPlanTest, AnOmittedDtypeIsTheTypeOfTheValuesAndTheSameFeed) {
  const std::string crop =
      "transforms { decode_jpeg {} } transforms { center_crop { height: 8 width: 8 } } ";
  const std::pair<std::string, const char*> outputs[] = {
      {"feature: 'label'", "INT64"},
      {"feature: 'record_id'", "INT64"},
      {"feature: 'weight'", "FLOAT32"},
      {"feature: 'raw' shape: 12 transforms { decode_raw {} }", "UINT8"},
      {"feature: 'image' transforms { decode_jpeg {} } "
       "transforms { center_crop { height: 8 width: 8 fraction: 0.5 } }",
       "FLOAT32"},  // center_crop resizes, which gives floats.
      {"feature: 'image' " + crop + "transforms { normalize { mean: 1 } }", "FLOAT32"},
      {"feature: 'image' " + crop + "transforms { round_to_uint8 {} }", "UINT8"},
      {"feature: 'raw' padded { length: 20 }", "UINT8"},
      {"feature: 'label' padded { length: 2 }", "INT64"},
      {"feature: 'weight' padded { length: 2 }", "FLOAT32"}};
  for (const auto& [output, dtype] : outputs) {
    const std::string head =
        absl::StrCat("dataset: 'test' global_batch: 4 outputs { name: 'a' ", output);
    const auto left_out = Plan(head + "}");
    const auto named = Plan(absl::StrCat(head, " dtype: ", dtype, "}"));
    ASSERT_THAT(left_out, IsOk()) << output;
    ASSERT_THAT(named, IsOk()) << output;
    EXPECT_EQ((*left_out)->layout(), (*named)->layout()) << output;
    EXPECT_EQ((*left_out)->fingerprint(), (*named)->fingerprint()) << output;
  }
}

TEST_F(FeedPlanTest, OmittedNumCoresMeansOneAndTheSameFingerprint) {
  const std::string spec = "dataset: 'test' global_batch: 3 outputs { name: 'a' feature: 'label' }";
  const auto left_out = Plan(spec);
  const auto named = Plan(spec + " num_cores: 1");
  ASSERT_THAT(left_out, IsOk());
  ASSERT_THAT(named, IsOk());
  EXPECT_EQ((*left_out)->num_cores(), 1);
  EXPECT_EQ((*left_out)->layout(), (*named)->layout());
  EXPECT_EQ((*left_out)->fingerprint(), (*named)->fingerprint());
}

TEST_F(FeedPlanTest, OrderFingerprintIgnoresCoresTypesAndCorruptPolicy) {
  const std::string output = "outputs { name: 'a' feature: 'label' dtype: ";
  const auto one = Plan("dataset: 'test' global_batch: 4 num_cores: 2 " + output + "INT64 }");
  const auto same =
      Plan("dataset: 'test' global_batch: 4 num_cores: 4 on_corrupt: MASK " + output + "INT32 }");
  const auto seed = Plan(
      "dataset: 'test' global_batch: 4 num_cores: 2 seed: 1 shuffle "
      "{ mode: GLOBAL } " +
      output + "INT64 }");
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(same, IsOk());
  ASSERT_THAT(seed, IsOk());
  EXPECT_EQ((*one)->order_fingerprint(), (*same)->order_fingerprint());
  EXPECT_NE((*one)->order_fingerprint(), (*seed)->order_fingerprint());
}

TEST_F(FeedPlanTest, AnUnknownDatasetIsNotFound) {
  EXPECT_THAT(Plan("dataset: 'other'"), StatusIs(absl::StatusCode::kNotFound,
                                                 AllOf(HasSubstr("'other'"), HasSubstr("'test'"))));
}

TEST_F(FeedPlanTest, InvalidNumbersOfTheSpecAreRefusedByName) {
  const std::string label = "outputs { name: 'a' feature: 'label' dtype: INT64 }";
  Refuses("dataset: 'test' num_cores: 2 " + label, "global_batch is 0");
  Refuses("dataset: 'test' global_batch: 4 num_cores: -1 " + label, "num_cores is -1");
  Refuses("dataset: 'test' global_batch: 5 num_cores: 2 " + label, "global_batch: 6");
  Refuses("dataset: 'test' global_batch: 4 num_cores: 2 epochs: -1 " + label, "epochs is -1");
  Refuses("dataset: 'test' global_batch: 4 num_cores: 2", "the spec has 0 outputs");
  std::string many;
  for (int i = 0; i < 64; ++i) {
    many += absl::StrCat("outputs { name: 'o", i, "' feature: 'label' dtype: INT64 }");
  }
  EXPECT_THAT(Plan("dataset: 'test' global_batch: 4 num_cores: 2 " + many), IsOk());
  Refuses("dataset: 'test' global_batch: 4 num_cores: 2 " + label + many,
          "the spec has 65 outputs, want 1 to 64");
  Refuses("dataset: 'test' global_batch: 4 num_cores: 2 " + label + label, "two outputs are named");
  // The dataset has only 7 records.
  Refuses("dataset: 'test' global_batch: 8 num_cores: 2 " + label, "global_batch");
  Refuses("dataset: 'test' global_batch: 4 num_cores: 2 shuffle { mode: WINDOW } " + label,
          "block_records");
}

TEST_F(FeedPlanTest, InvalidEnumValuesAreRefusedWithTheValidNames) {
  const v1::FeedSpec good = SpecFromText(
      "dataset: 'test' global_batch: 4 num_cores: 2 outputs { name: 'a' feature: 'image' dtype: "
      "UINT8 transforms { decode_jpeg {} } transforms { resize { height: 2 width: 2 } } }");
  ASSERT_THAT(FeedPlan::Create(good, dataset_), IsOk());
  const auto refuses = [this](const v1::FeedSpec& spec, const std::string& message) {
    EXPECT_THAT(FeedPlan::Create(spec, dataset_),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  v1::FeedSpec spec = good;
  spec.set_tail(static_cast<v1::Tail>(99));
  refuses(spec, "tail is 99, want DROP or PAD");
  spec = good;
  spec.set_on_corrupt(static_cast<v1::OnCorrupt>(9));
  refuses(spec, "on_corrupt is 9, want FAIL or MASK");
  spec = good;
  spec.mutable_shuffle()->set_mode(static_cast<v1::Shuffle::Mode>(-1));
  refuses(spec, "shuffle.mode is -1, want NONE, GLOBAL or WINDOW");
  spec = good;
  spec.mutable_outputs(0)->set_layout(static_cast<v1::Layout>(7));
  refuses(spec, "output 'a': layout is 7, want NHWC, NCHW, HWCN or HWCN_TILED");
  spec = good;
  spec.mutable_outputs(0)->set_dtype(static_cast<v1::DataType>(8));
  refuses(spec, "dtype is 8, want UINT8, FLOAT32, BFLOAT16 or FLOAT16");
  spec = good;
  spec.mutable_outputs(0)->mutable_transforms(0)->mutable_decode_jpeg()->set_dct(
      static_cast<v1::DecodeJpeg::Dct>(3));
  refuses(spec, "has dct 3, want ISLOW or IFAST");
  spec = good;
  spec.mutable_outputs(0)->mutable_transforms(0)->Clear();
  refuses(spec,
          "transforms[0] (empty) names no transform that this server knows; it has "
          "decode_jpeg, decode_raw");
}

TEST_F(FeedPlanTest, ABatchLargerThanTheDatasetIsRefusedWithARemedy) {
  Refuses(
      "dataset: 'test' global_batch: 8 num_cores: 2 outputs { name: 'a' feature: 'label' "
      "dtype: INT64 }",
      "has only 7 records, and tail: DROP leaves them all out; say tail: PAD");
}

TEST_F(FeedPlanTest, AnImageOfUnknownSizeIsRefusedWithARemedy) {
  RefusesOutput(
      "name: 'a' feature: 'image' dtype: UINT8 transforms { decode_jpeg {} } "
      "transforms { random_flip {} }",
      "add a transform that sets the size: random_resized_crop");
  RefusesOutput(
      "name: 'a' feature: 'image' dtype: UINT8 transforms { decode_jpeg {} } "
      "transforms { resize { width: 5 } }",
      "resize has height: 0 and width: 5, want 1 to 16384 each");
}

TEST_F(FeedPlanTest, ACacheWithNothingToKeepIsRefusedWithItsOutputAndTheRemedy) {
  const std::string head = "name: 'a' cache: MEMORY ";
  RefusesOutput(head + "feature: 'label'",
                "output 'a': cache keeps decoded images, but the feature holds numbers; leave");
  RefusesOutput(head + "feature: 'record_id'", "output 'a': cache keeps decoded images");
  RefusesOutput(head + "feature: 'weight'", "output 'a': cache keeps decoded images");
  RefusesOutput(head + "feature: 'raw' padded { length: 20 }", "leave out cache");
  RefusesOutput(head +
                    "feature: 'raw' shape: [2, 2, 3] transforms { decode_raw {} } "
                    "transforms { random_flip {} }",
                "output 'a': cache has nothing to keep: the transforms before the first random one "
                "only copy stored bytes");
  RefusesOutput(head +
                    "feature: 'image' transforms { decode_jpeg { scale: AUTO } } "
                    "transforms { random_resized_crop { height: 8 width: 8 } }",
                "use scale: FULL, or leave cache out");
  // In a binary message, an enum can have any number.
  v1::FeedSpec spec = SpecFromText(
      "dataset: 'test' global_batch: 4 outputs { name: 'a' feature: 'image' transforms { "
      "decode_jpeg {} } transforms { random_crop { height: 8 width: 8 } } }");
  EXPECT_THAT(FeedPlan::Create(spec, dataset_), IsOk());
  spec.mutable_outputs(0)->set_cache(static_cast<v1::Cache>(7));
  EXPECT_THAT(FeedPlan::Create(spec, dataset_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("output 'a': cache is 7, want NONE, MEMORY or DISK")));
}

TEST_F(FeedPlanTest, ShapesThatNoRecordHasAreRefused) {
  const std::string raw = "name: 'a' feature: 'raw' dtype: UINT8 transforms { decode_raw {} } ";
  RefusesOutput(raw + "shape: 13", "shape has 13 elements, but the feature 'raw' has 12 bytes");
  RefusesOutput(raw + "shape: [3, 5]", "shape has 15 elements");
  RefusesOutput(raw + "shape: 1000000", "the largest record has ");
  RefusesOutput("name: 'a' feature: 'pair' dtype: INT64",
                "shape has 1 element (no shape is given), but the feature 'pair' has 2 values");
  RefusesOutput("name: 'a' feature: 'label' dtype: INT64 shape: 2", "has 1 values");
  RefusesOutput("name: 'a' feature: 'path' dtype: FLOAT32 shape: 2000", "the largest record has ");
  RefusesOutput("name: 'a' feature: 'record' dtype: UINT8 transforms { decode_raw {} } shape: 7",
                "shape has 7 elements, but the records have ");
}

TEST(FeedPlanShapeTest, AShapeThatOneRecordOfTheSampleHasIsAccepted) {
  ShardBuilder shard;
  for (int i = 0; i < 4; ++i) {
    shard.Add(ExampleBuilder().AddInt64s("tags", std::vector<int64_t>(i, 7)).Serialize());
  }
  const std::shared_ptr<Dataset> dataset = OpenTestDataset({shard.Build()});
  const auto plan = [&dataset](int shape) {
    return FeedPlan::Create(
        SpecFromText(absl::StrCat("dataset: 'test' global_batch: 4 num_cores: 2 outputs { name: "
                                  "'a' feature: 'tags' dtype: INT64 shape: ",
                                  shape, " }")),
        dataset);
  };
  // The first record's list is empty, and does not show the kind of its values.
  EXPECT_THAT(plan(3).status(), IsOk());
  EXPECT_THAT(plan(5), StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("has 0 or 1 or 2 or 3 values")));
}

TEST_F(FeedPlanTest, InvalidOutputsAreRefusedWithAReason) {
  RefusesOutput("name: 'a b' feature: 'label' dtype: INT64", "name: want");
  RefusesOutput("name: 'valid' feature: 'label' dtype: INT64", "the name is taken");
  RefusesOutput("name: 'a' dtype: INT64", "names no feature");
  RefusesOutput("name: 'a' feature: 'labl' dtype: INT64",
                "no feature 'labl'; it has 'image' (bytes), 'label' (int64)");
  RefusesOutput("name: 'a' feature: 'labl' dtype: INT64", "did you mean 'label'?");
  RefusesOutput("name: 'a' feature: 'recordid' dtype: INT64", "did you mean 'record_id'?");
  RefusesOutput("name: 'a\\n' feature: 'label' dtype: INT64", "output 'a\\n': name: want");
  RefusesOutput("name: 'a' feature: 'label' dtype: UINT8", "dtype is UINT8, want INT64 or INT32");
  RefusesOutput("name: 'a' feature: 'weight' dtype: INT64", "want FLOAT32, BFLOAT16 or FLOAT16");
  RefusesOutput("name: 'a' feature: 'raw' dtype: UINT8",
                "begin with decode_jpeg, decode_png, decode_image or decode_raw");
  RefusesOutput("name: 'a' feature: 'raw' dtype: UINT8 transforms { decode_raw {} }", "shape: 784");
  RefusesOutput("name: 'a' feature: 'raw' dtype: UINT8 shape: [-1] transforms { decode_raw {} }",
                "dimension of -1");
  RefusesOutput("name: 'a' feature: 'raw' dtype: INT64 shape: 12 transforms { decode_raw {} }",
                "want UINT8, FLOAT32, BFLOAT16 or FLOAT16");
  RefusesOutput("name: 'a' feature: 'record_id' shape: 1 dtype: INT64", "record_id is a scalar");
  RefusesOutput("name: 'a' feature: 'label' dtype: INT64 layout: NCHW", "layout is NCHW");
  RefusesOutput("name: 'a' feature: 'path' shape: 3 dtype: BFLOAT16 layout: HWCN_TILED",
                "layout is HWCN_TILED, but the shape has 1 dimensions");
  for (const std::string dtype : {"UINT8", "FLOAT32"}) {
    RefusesOutput(
        "name: 'a' feature: 'image' layout: HWCN_TILED transforms { decode_jpeg {} } "
        "transforms { resize { height: 4 width: 4 } } dtype: " +
            dtype,
        "layout is HWCN_TILED, but dtype is " + dtype + ", want BFLOAT16");
  }
}

TEST_F(FeedPlanTest, OutputsThatNeedTooMuchMemoryPerThreadAreRefused) {
  const std::string jpeg = "feature: 'image' dtype: UINT8 transforms { decode_jpeg {} } ";
  const auto outputs = [&jpeg](int count, const std::string& resize) {
    std::string spec = "dataset: 'test' global_batch: 2 num_cores: 2 ";
    for (int i = 0; i < count; ++i) {
      absl::StrAppend(&spec, "outputs { name: 'a", i, "' ", jpeg, "transforms { resize { ", resize,
                      " } } } ");
    }
    return spec;
  };
  EXPECT_THAT(FeedPlan::Create(SpecFromText(outputs(16, "height: 224 width: 224")), dataset_),
              IsOk());
  // On every thread each output needs memory for the coefficients of two JPEGs.
  Refuses(outputs(64, "height: 1 width: 1"), "for decode_jpeg");
  // On every thread each output needs two resizers, and each resizer has tables of 2.4 MB.
  Refuses(outputs(30, "height: 1 width: 16384"), "to resize");
  // The change from NHWC to NCHW takes 192 MiB on every thread.
  RefusesOutput(
      "name: 'a' " + jpeg + "transforms { resize { height: 8192 width: 8192 } } " + "layout: NCHW",
      "before it is copied to its place");
}

TEST_F(FeedPlanTest, TransformsThatComputeTooManyValuesAreRefused) {
  std::string x = "name: 'a' feature: 'image' dtype: UINT8 transforms { decode_jpeg {} } ";
  for (int i = 0; i < 7; ++i) x += "transforms { resize { height: 2048 width: 2048 } }";
  RefusesOutput(x, "compute 75497472 values");
}

TEST_F(FeedPlanTest, AnExampleThatCostsTooMuchIsRefusedWithWhatMakesItSo) {
  // LANCZOS5 adds up 10 rows of the input for each row of the result, and then 10 columns for each
  // column: 2 * 10 * 2100 * 2100 * 3 values.
  RefusesOutput(
      "name: 'a' feature: 'image' dtype: UINT8 transforms { decode_jpeg {} } "
      "transforms { resize { height: 2100 width: 2100 } } "
      "transforms { resize { height: 2100 width: 2100 method: LANCZOS5 } }",
      "want at most 268435456; the largest part is output 'a' resize, 264600000");
}

TEST_F(FeedPlanTest, AGroupThatCostsTooMuchIsRefusedWithItsSize) {
  std::string gammas;
  for (int i = 0; i < 10; ++i) gammas += "transforms { gamma { gamma_min: 2 gamma_max: 2 } } ";
  const auto spec = [&gammas](int group) {
    return absl::StrCat(
        "dataset: 'test' tail: PAD global_batch: 512 num_cores: 2 outputs { name: 'a' feature: "
        "'image' dtype: FLOAT32 transforms { decode_jpeg {} } "
        "transforms { resize { height: 600 width: 600 } } ",
        gammas, "transforms { crop { height: 2 width: 2 } } } mix { group: ", group,
        " images: 'a' mixup {} }");
  };
  EXPECT_THAT(Plan(spec(64)), IsOk());
  Refuses(spec(256), "mix has a group of 256 examples, and a thread computes 1188");
  Refuses(spec(256), "make the group smaller");
}

TEST_F(FeedPlanTest, ADefaultImageCountsInWhatAnExampleCosts) {
  const std::string jpeg = *EncodeJpeg(std::vector<uint8_t>(2000 * 2000, 7), 2000, 2000, 1);
  v1::FeedSpec spec = SpecFromText(
      "dataset: 'test' tail: PAD global_batch: 512 num_cores: 2 outputs { name: 'a' feature: "
      "'missing' dtype: FLOAT32 default_value {} transforms { decode_jpeg {} } "
      "transforms { resize { height: 300 width: 300 } } } mix { group: 256 images: 'a' mixup {} }");
  spec.mutable_outputs(0)->mutable_default_value()->set_bytes(jpeg);
  EXPECT_THAT(FeedPlan::Create(spec, dataset_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("decode_jpeg of an image of 2000 x 2000, 4000000")));
}

TEST_F(FeedPlanTest, TooLargeNormalizeFactorsAfterAResizeAreRefused) {
  RefusesOutput(
      "name: 'a' feature: 'image' dtype: FLOAT32 transforms { decode_jpeg {} } "
      "transforms { resize { height: 2 width: 2 } } transforms { normalize { scale: 1e35 } }",
      "up to 1e30");
}

TEST_F(FeedPlanTest, InvalidTransformsAreRefusedWithAReason) {
  const std::string jpeg = "name: 'a' feature: 'image' dtype: UINT8 transforms { decode_jpeg {} }";
  const std::string crop = "transforms { center_crop { height: 8 width: 8 } }";
  RefusesOutput(jpeg, "add a transform that sets the size: random_resized_crop");
  RefusesOutput(jpeg + jpeg.substr(jpeg.find("transforms")),
                "transforms[1] decode_jpeg needs a bytes feature as it is stored, but gets uint8");
  RefusesOutput("name: 'a' feature: 'weight' dtype: FLOAT32 transforms { random_flip {} }",
                "transforms[0] random_flip needs an image");
  RefusesOutput(jpeg + crop + "transforms { random_crop { height: 9 width: 8 } }",
                "has height: 9 and width: 8, but gets images of 8 x 8 pixels");
  RefusesOutput(jpeg + crop + "transforms { normalize {} key: 'k' }",
                "transforms[2] normalize has a key, but draws nothing");
  RefusesOutput(
      absl::StrCat(jpeg, crop, "transforms { random_flip {} key: '", std::string(65, 'k'), "' }"),
      "has a key of 65 bytes, want at most 64");
  std::string many = jpeg + crop;
  for (int i = 0; i < 31; ++i) many += "transforms { random_flip {} }";
  RefusesOutput(many, "has 33 transforms, want at most 32");
  RefusesOutput(jpeg + "transforms {}", "transforms[1] (empty)");
  for (const char* early : {"normalize {}", "random_flip {}", "resize { height: 2 width: 2 }"}) {
    RefusesOutput(
        absl::StrCat("name: 'a' feature: 'raw' dtype: UINT8 shape: [2, 2, 3] transforms { ", early,
                     " }"),
        "begin with decode_jpeg, decode_png, decode_image or decode_raw");
  }
  RefusesOutput(jpeg + "transforms { resize { height: 0 width: 8 } }", "height: 0 and width: 8");
  RefusesOutput(jpeg + "transforms { resize { height: 8 width: 99999 } }",
                "height: 8 and width: 99999");
  RefusesOutput(jpeg + "transforms { center_crop { height: 8 width: 8 fraction: 1.5 } }",
                "fraction is 1.5");
  RefusesOutput(jpeg + "transforms { random_resized_crop { height: 8 width: 8 area_min: 2 } }",
                "transforms[1] random_resized_crop");
  RefusesOutput(jpeg + crop + "transforms { normalize { stddev: 0 } }", "no stddev of 0");
  RefusesOutput(jpeg + crop + "transforms { normalize { mean: [1, 2] } }", "want 1 or 3");
  RefusesOutput("name: 'a' feature: 'label' dtype: INT64 transforms { decode_jpeg {} }",
                "needs a bytes feature as it is stored, but gets int64");
  RefusesOutput("name: 'a' feature: 'label' dtype: INT64 transforms { normalize {} }",
                "needs pixels, raw bytes or a float feature");
  RefusesOutput(
      "name: 'a' feature: 'label' dtype: FLOAT32 transforms { label_map { keys: 1 values: 2 } }",
      "dtype is FLOAT32, want INT64 or INT32");
  RefusesOutput("name: 'a' feature: 'label' dtype: INT64 transforms { one_hot { depth: 2 } }",
                "dtype is INT64, want UINT8, FLOAT32, BFLOAT16 or FLOAT16");
  RefusesOutput("name: 'a' feature: 'weight' dtype: FLOAT32 transforms { one_hot { depth: 2 } }",
                "needs an int64 feature, but gets float32");
  RefusesOutput(
      "name: 'a' feature: 'raw' dtype: UINT8 shape: 12 transforms { decode_raw {} } "
      "transforms { random_flip {} }",
      "needs an image");
  RefusesOutput("name: 'a' feature: 'image' dtype: UINT8 shape: 3 transforms { decode_jpeg {} }",
                "shape must be empty");
  RefusesOutput(
      "name: 'a' feature: 'image' dtype: UINT8 transforms { decode_jpeg { channels: 2 } }",
      "channels is 2");
}

TEST_F(FeedPlanTest, UnknownFieldsAndEnumValuesAreRefused) {
  const v1::FeedSpec good =
      SpecFromText(absl::StrCat("dataset: 'test' global_batch: 4 num_cores: 2 ", AllOutputs()));
  ASSERT_THAT(FeedPlan::Create(good, dataset_), IsOk());

  v1::FeedSpec field = good;
  field.GetReflection()->MutableUnknownFields(&field)->AddVarint(1000, 1);
  v1::FeedSpec nested_field = good;
  v1::Resize& resize = *nested_field.mutable_outputs(2)->mutable_transforms(1)->mutable_resize();
  resize.GetReflection()->MutableUnknownFields(&resize)->AddVarint(1000, 1);
  for (const v1::FeedSpec& spec : {field, nested_field}) {
    EXPECT_THAT(FeedPlan::Create(spec, dataset_), StatusIs(absl::StatusCode::kInvalidArgument,
                                                           HasSubstr("not known to this version")));
  }

  v1::FeedSpec dct = good;
  dct.mutable_outputs(0)->mutable_transforms(0)->mutable_decode_jpeg()->set_dct(
      static_cast<v1::DecodeJpeg::Dct>(7));
  EXPECT_THAT(FeedPlan::Create(dct, dataset_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dct 7")));
}

TEST(DatasetTest, RecordsThatAreNoExamplesCanBeFedWhole) {
  const std::shared_ptr<Dataset> dataset =
      OpenTestDataset({ShardBuilder().Add("\xff\xff\xff").Add("\xff\xff\xfe").Build()});
  EXPECT_TRUE(dataset->features().empty());
  const std::string head = "dataset: 'test' global_batch: 1 num_cores: 1 outputs { name: 'a' ";
  EXPECT_THAT(FeedPlan::Create(SpecFromText(head + "feature: 'image' dtype: UINT8 }"), dataset),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("use the feature 'record'")));
  EXPECT_THAT(FeedPlan::Create(SpecFromText(head + "feature: 'record' dtype: UINT8 shape: 3 "
                                                   "transforms { decode_raw {} } }"),
                               dataset),
              IsOk());
}

TEST(DatasetTest, FingerprintSeesContentAndNotNames) {
  const std::vector<std::string> shards = TestShards({2, 2});
  const uint64_t fingerprint = OpenTestDataset(shards)->fingerprint();
  EXPECT_EQ(OpenTestDataset(shards, "another name")->fingerprint(), fingerprint);
  EXPECT_NE(OpenTestDataset({shards[1], shards[0]})->fingerprint(), fingerprint);
  EXPECT_NE(OpenTestDataset({shards[0]})->fingerprint(), fingerprint);
}

TEST(DatasetTest, NoRecordAtAllIsAnError) {
  std::vector<std::unique_ptr<const RecordSource>> shards;
  absl::StatusOr<TfRecordShard> empty = TfRecordShard::Create(std::make_unique<MemorySource>(""));
  ASSERT_THAT(empty, IsOk());
  shards.push_back(std::make_unique<TfRecordShard>(*std::move(empty)));
  EXPECT_THAT(Dataset::Create("test", std::move(shards)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("hold no record")));
}

TEST(DamageLogTest, CutsLongCauses) {
  DamageLog log;
  log.Add({.cause = std::string(1 << 20, 'x')});
  EXPECT_EQ(log.entries()[0].cause, std::string(DamageLog::kMaxCauseBytes, 'x'));
}

TEST(DamageLogTest, CountsAllAndKeepsEachRecordOnceUpToTheLimit) {
  DamageLog log;
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t record = 0; record < 150; ++record) log.Add({.record = record});
  }
  EXPECT_EQ(log.masked_examples(), 300);
  ASSERT_EQ(log.entries().size(), DamageLog::kMaxEntries);
  EXPECT_EQ(log.entries()[99].record, 99);
}

}  // namespace
}  // namespace systole
