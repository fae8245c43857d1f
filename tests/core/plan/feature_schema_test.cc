// Tests features that some records lack, and lists of any length.
#include "core/plan/feature_schema.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/engine/step_engine.h"
#include "core/example/example_builder.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/numeric/bf16.h"
#include "core/plan/feed_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Makes four records with lists of 0 to 3 items and strings of 0 to 6 bytes. The third record has
// none of these features.
std::shared_ptr<Dataset> FourRecords() {
  ShardBuilder shard;
  shard.Add(ExampleBuilder()
                .AddInt64s("tokens", {})
                .AddFloats("boxes", {0.5, 1.5})
                .AddBytes("text", "")
                .AddInt64s("label", {7})
                .AddFloats("weight", {0.25})
                .Serialize());
  shard.Add(ExampleBuilder()
                .AddInt64s("tokens", {5, -6, int64_t{1} << 40})
                .AddFloats("boxes", {-0.0f, 2, 3, 4, 5, 6})
                .AddBytes("text", "abc")
                .AddInt64s("label", {8})
                .AddFloats("weight", {0.5})
                .Serialize());
  shard.Add(ExampleBuilder().AddInt64s("other", {1}).Serialize());
  shard.Add(ExampleBuilder()
                .AddInt64s("tokens", {9})
                .AddFloats("boxes", {})
                .AddBytes("text", "abcdef")
                .AddInt64s("label", {9})
                .AddFloats("weight", {1})
                .Serialize());
  return OpenTestDataset({shard.Build()});
}

absl::StatusOr<std::shared_ptr<const FeedPlan>> Plan(const std::string& outputs,
                                                     const std::string& more = "") {
  return FeedPlan::Create(
      SpecFromText(absl::StrCat("dataset: 'test' global_batch: 4 num_cores: 1 epochs: 1 ", more,
                                " ", outputs)),
      FourRecords());
}

// Returns the only step of a feed of all four records.
StepStream::Result OnlyStep(const std::string& outputs, const std::string& more = "") {
  const absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = Plan(outputs, more);
  if (!plan.ok()) return plan.status();
  StepEngine engine({.threads = 1});
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(*plan, {});
  EXPECT_THAT(stream, IsOk());
  return (*stream)->Next();
}

template <typename T>
std::vector<T> ValuesOf(const CoreSlice& slice, absl::string_view name) {
  const auto view = slice.layout().View(slice.layout().IndexOf(name), slice.data());
  const auto values = view.template As<T>();
  return std::vector<T>(values.begin(), values.end());
}

TEST(PaddedTest, ListsArePaddedAndTheirLengthsAreOutput) {
  const auto slice = OnlyStep(R"pb(outputs {
                                     name: "tokens"
                                     feature: "tokens"
                                     dtype: INT64
                                     padded { length: 3 value: -1 }
                                   })pb");
  ASSERT_THAT(slice, IsOk());
  EXPECT_THAT(ValuesOf<int64_t>(***slice, "tokens"),
              ElementsAre(-1, -1, -1, 5, -6, int64_t{1} << 40, -1, -1, -1, 9, -1, -1));
  EXPECT_THAT(ValuesOf<int32_t>(***slice, "tokens_length"), ElementsAre(0, 3, 0, 1));
  EXPECT_THAT(ValuesOf<uint8_t>(***slice, "valid"), Each(1));
}

TEST(PaddedTest, PaddedItemsHaveTheGivenShapeAndFloatsKeepTheirBits) {
  const auto slice = OnlyStep(R"pb(outputs {
                                     name: "boxes"
                                     feature: "boxes"
                                     dtype: FLOAT32
                                     shape: 2
                                     padded { length: 4 value: 8.5 }
                                   })pb");
  ASSERT_THAT(slice, IsOk());
  const SliceLayout& layout = (**slice)->layout();
  EXPECT_THAT(layout.tensors()[static_cast<size_t>(layout.IndexOf("boxes"))].spec.shape,
              ElementsAre(4, 4, 2));
  const std::vector<float> values = ValuesOf<float>(***slice, "boxes");
  EXPECT_THAT(std::vector<float>(values.begin(), values.begin() + 16),
              ElementsAre(0.5, 1.5, 8.5, 8.5, 8.5, 8.5, 8.5, 8.5, 0, 2, 3, 4, 5, 6, 8.5, 8.5));
  EXPECT_TRUE(std::signbit(values[8]));
  EXPECT_THAT(ValuesOf<int32_t>(***slice, "boxes_length"), ElementsAre(1, 3, 0, 0));
}

TEST(PaddedTest, FloatsAreRoundedToBfloat16) {
  const auto slice = OnlyStep(R"pb(outputs {
                                     name: "boxes"
                                     feature: "boxes"
                                     dtype: BFLOAT16
                                     padded { length: 6 }
                                   })pb");
  ASSERT_THAT(slice, IsOk());
  const std::vector<uint16_t> values = ValuesOf<uint16_t>(***slice, "boxes");
  EXPECT_EQ(values[1], RoundToBf16(1.5f));
  EXPECT_EQ(values[2], 0);
  EXPECT_EQ(values[11], RoundToBf16(6.0f));
}

TEST(PaddedTest, AStringIsPaddedAsUint8Bytes) {
  const auto slice = OnlyStep(R"pb(outputs {
                                     name: "text"
                                     feature: "text"
                                     dtype: UINT8
                                     padded { length: 6 value: 32 }
                                   })pb");
  ASSERT_THAT(slice, IsOk());
  const std::vector<uint8_t> values = ValuesOf<uint8_t>(***slice, "text");
  EXPECT_EQ(std::string(values.begin(), values.end()), "      abc         abcdef");
  EXPECT_THAT(ValuesOf<int32_t>(***slice, "text_length"), ElementsAre(0, 3, 0, 6));
}

TEST(PaddedTest, AWholeRecordCanBePadded) {
  const auto slice = OnlyStep(R"pb(outputs {
                                     name: "record"
                                     feature: "record"
                                     dtype: UINT8
                                     padded { length: 1000 }
                                   })pb");
  ASSERT_THAT(slice, IsOk());
  const std::vector<int32_t> lengths = ValuesOf<int32_t>(***slice, "record_length");
  const std::string third = ExampleBuilder().AddInt64s("other", {1}).Serialize();
  EXPECT_EQ(lengths[2], static_cast<int32_t>(third.size()));
  const std::vector<uint8_t> values = ValuesOf<uint8_t>(***slice, "record");
  EXPECT_THAT(std::string(values.begin() + 2000, values.begin() + 3000), StartsWith(third));
}

TEST(PaddedTest, ATooLongListIsTruncatedIfAllowedAndElseDataLoss) {
  const std::string output = R"pb(outputs { name: "t" feature: "tokens" dtype: INT64
                                            padded { length: 2)pb";
  EXPECT_THAT(OnlyStep(absl::StrCat(output, " } }")),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("record 1"), HasSubstr("feature \"tokens\""),
                             HasSubstr("at most 2 items, the record has 3"),
                             HasSubstr("padded.truncate"))));
  const auto masked = OnlyStep(absl::StrCat(output, " } }"), "on_corrupt: MASK");
  ASSERT_THAT(masked, IsOk());
  EXPECT_THAT(ValuesOf<uint8_t>(***masked, "valid"), ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(ValuesOf<int32_t>(***masked, "t_length"), ElementsAre(0, 0, 0, 1));
  const auto cut = OnlyStep(absl::StrCat(output, " truncate: true } }"));
  ASSERT_THAT(cut, IsOk());
  EXPECT_THAT(ValuesOf<int64_t>(***cut, "t"), ElementsAre(0, 0, 5, -6, 0, 0, 9, 0));
  EXPECT_THAT(ValuesOf<int32_t>(***cut, "t_length"), ElementsAre(0, 2, 0, 1));
}

TEST(PaddedTest, ValuesThatDoNotFitTypeOrShapeAreDataLoss) {
  EXPECT_THAT(OnlyStep("outputs { name: 't' feature: 'tokens' dtype: INT32 padded { length: 3 } }"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("does not fit int32")));
  EXPECT_THAT(OnlyStep("outputs { name: 'b' feature: 'boxes' dtype: FLOAT32 shape: 4 "
                       "padded { length: 3 } }"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("want a multiple of 4 values")));
}

TEST(PaddedTest, InvalidPaddedOutputsAreRefusedWithTheirName) {
  const auto refused = [](const std::string& output, const std::string& what) {
    SCOPED_TRACE(output);
    EXPECT_THAT(Plan(absl::StrCat("outputs { name: 'x' ", output, " }")),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("output 'x'"), HasSubstr(what))));
  };
  refused("feature: 'tokens' dtype: INT64 padded {}", "padded.length is 0");
  refused("feature: 'tokens' dtype: INT64 padded { length: 90000000000 }", "padded.length");
  refused("feature: 'tokens' dtype: FLOAT32 padded { length: 3 }", "want INT64 or INT32");
  refused("feature: 'tokens' dtype: INT64 padded { length: 3 value: 0.5 }", "whole number");
  refused("feature: 'tokens' dtype: INT32 padded { length: 3 value: 3e9 }", "padded.value");
  refused("feature: 'tokens' dtype: INT64 padded { length: 3 value: nan }", "padded.value");
  refused("feature: 'text' dtype: UINT8 padded { length: 3 value: 256 }", "padded.value");
  refused("feature: 'text' dtype: UINT8 shape: 2 padded { length: 3 }", "leave out shape");
  refused("feature: 'text' dtype: UINT8 padded { length: 3 } transforms { decode_raw {} }",
          "no transforms");
  refused("feature: 'tokens' dtype: INT64 padded { length: 3 } default_value { int64s: 1 }",
          "leave out default_value");
  refused("feature: 'record_id' dtype: INT64 padded { length: 3 }", "record_id is a scalar");
  refused("feature: 'tokens' dtype: INT64 padded { length: 3 } layout: HWCN", "no layout");
}

TEST(PaddedTest, NoOutputMayHaveTheNameOfALengthOutput) {
  EXPECT_THAT(Plan("outputs { name: 't' feature: 'tokens' dtype: INT64 padded { length: 3 } } "
                   "outputs { name: 't_length' feature: 'record_id' dtype: INT64 }"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("t_length")));
}

TEST(DefaultValueTest, ReplacesFeaturesThatARecordLacks) {
  const auto slice = OnlyStep(R"pb(
    outputs {
      name: "label"
      feature: "label"
      dtype: INT32
      default_value { int64s: -1 }
    }
    outputs {
      name: "weight"
      feature: "weight"
      dtype: FLOAT32
      transforms { normalize { scale: 2 } }
      default_value { floats: 4 }
    }
    outputs {
      name: "rare"
      feature: "other"
      dtype: INT64
      default_value { int64s: 3 }
    }
    outputs {
      name: "nowhere"
      feature: "nowhere"
      dtype: BFLOAT16
      shape: 2
      default_value { floats: [ 1, 2 ] }
    }
  )pb");
  ASSERT_THAT(slice, IsOk());
  EXPECT_THAT(ValuesOf<int32_t>(***slice, "label"), ElementsAre(7, 8, -1, 9));
  EXPECT_THAT(ValuesOf<float>(***slice, "weight"), ElementsAre(0.5, 1, 8, 2));
  EXPECT_THAT(ValuesOf<int64_t>(***slice, "rare"), ElementsAre(3, 3, 1, 3));
  const uint16_t one = RoundToBf16(1);
  const uint16_t two = RoundToBf16(2);
  EXPECT_THAT(ValuesOf<uint16_t>(***slice, "nowhere"),
              ElementsAre(one, two, one, two, one, two, one, two));
}

TEST(DefaultValueTest, ReplacesAMissingImage) {
  ShardBuilder shard;
  shard.Add(ExampleBuilder().AddBytes("image", TestJpeg(1)).Serialize());
  shard.Add(ExampleBuilder().AddInt64s("label", {1}).Serialize());
  v1::FeedSpec spec = SpecFromText(R"pb(
    dataset: "test"
    global_batch: 2
    num_cores: 1
    epochs: 1
    outputs {
      name: "image"
      feature: "image"
      dtype: UINT8
      transforms { decode_jpeg {} }
      transforms { resize { height: 4 width: 4 } }
    }
  )pb");
  spec.mutable_outputs(0)->mutable_default_value()->set_bytes(TestJpeg(1));
  const auto plan = FeedPlan::Create(spec, OpenTestDataset({shard.Build()}));
  ASSERT_THAT(plan, IsOk());
  StepEngine engine({.threads = 1});
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(*plan, {});
  ASSERT_THAT(stream, IsOk());
  const StepStream::Result slice = (*stream)->Next();
  ASSERT_THAT(slice, IsOk());
  const std::vector<uint8_t> pixels = ValuesOf<uint8_t>(***slice, "image");
  EXPECT_TRUE(std::equal(pixels.begin(), pixels.begin() + 48, pixels.begin() + 48));
}

TEST(DefaultValueTest, AMissingFeatureWithoutADefaultIsNamedInADataLossError) {
  EXPECT_THAT(OnlyStep("outputs { name: 'l' feature: 'label' dtype: INT32 }"),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("record 2"), HasSubstr("feature \"label\""),
                             HasSubstr("has no such feature"))));
}

TEST(DefaultValueTest, DefaultsOfAWrongKindOrNumberAreRefused) {
  const auto refused = [](const std::string& output, const std::string& what) {
    SCOPED_TRACE(output);
    EXPECT_THAT(Plan(absl::StrCat("outputs { name: 'x' ", output, " }")),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("output 'x'"), HasSubstr(what))));
  };
  refused("feature: 'label' dtype: INT32 default_value { floats: 1 }", "the feature has: int64");
  refused("feature: 'label' dtype: INT32 default_value { int64s: 1 floats: 1 }",
          "of the kind that the feature has");
  refused("feature: 'label' dtype: INT32 default_value {}", "of the kind that the feature has");
  refused("feature: 'label' shape: 3 dtype: INT32 default_value { int64s: [1, 2] }",
          "has 2 values, want 1, or 3");
  refused("feature: 'record_id' dtype: INT32 default_value { int64s: 1 }", "every record has");
  refused("feature: 'nowhere' dtype: INT32", "set default_value or padded");
}

TEST(DefaultValueTest, DefaultsThatCannotBeProcessedAreRefusedAtPlanTime) {
  const auto refused = [](const std::string& output, const std::string& what) {
    SCOPED_TRACE(output);
    EXPECT_THAT(Plan(absl::StrCat("outputs { name: 'x' ", output, " }")),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("output 'x': default_value"), HasSubstr(what))));
  };
  refused("feature: 'label' dtype: INT32 default_value { int64s: 3000000000 }", "int32");
  refused(
      "feature: 'a' dtype: UINT8 shape: 4 transforms { decode_raw {} } "
      "default_value { bytes: 'abc' }",
      "3 bytes, want 4");
  refused(
      "feature: 'a' dtype: UINT8 transforms { decode_jpeg {} } "
      "transforms { resize { height: 6000 width: 6000 } } transforms { round_to_uint8 {} } "
      "default_value { bytes: 'abc' }",
      "JPEG");
  refused(
      "feature: 'label' dtype: UINT8 transforms { label_map { keys: 1 values: 2 } } "
      "transforms { one_hot { depth: 3 } } default_value { int64s: 7 }",
      "7");
}

TEST(DefaultValueTest, CheckingDefaultImagesDecodesALimitedNumberOfPixels) {
  // The last output's default image lacks its last 100 bytes. This shows only when the image is
  // decoded. The check of a spec decodes at most kMaxDefaultPixels = 512 x 512 pixels.
  const auto status_of = [](int height, int outputs) {
    const std::vector<uint8_t> grey(static_cast<size_t>(height) * 512, 7);
    const std::string whole = *EncodeJpeg(grey, 512, height, 1);
    v1::FeedSpec spec = SpecFromText("dataset: 'test' global_batch: 1 num_cores: 1");
    for (int i = 0; i < outputs; ++i) {
      v1::Output& output = *spec.add_outputs();
      output = SpecFromText(
                   "outputs { feature: 'a' dtype: UINT8 transforms { decode_jpeg {} } "
                   "transforms { resize { height: 8 width: 8 } } }")
                   .outputs(0);
      output.set_name(absl::StrCat("x", i));
      output.mutable_default_value()->set_bytes(
          i + 1 == outputs ? whole.substr(0, whole.size() - 100) : whole);
    }
    return FeedPlan::Create(spec, OpenTestDataset(TestShards({1}))).status();
  };
  EXPECT_THAT(status_of(512, 1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("JPEG")));
  EXPECT_THAT(status_of(513, 1), IsOk());
  // The pixels of all outputs count together.
  EXPECT_THAT(status_of(256, 2), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("JPEG")));
  EXPECT_THAT(status_of(256, 3), IsOk());
}

TEST(DefaultValueTest, ARepeatedDefaultIsStoredOnceAndItsShapeIsBounded) {
  for (const int64_t elements : {int64_t{1} << 21, int64_t{1} << 36}) {
    EXPECT_THAT(Plan(absl::StrCat("outputs { name: 'x' feature: 'label' dtype: INT32 shape: ",
                                  elements, " default_value { int64s: 1 } }")),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(absl::StrCat(elements)), HasSubstr("at most 1048576"))));
  }
  const auto plan = Plan(
      "outputs { name: 'x' feature: 'nowhere' dtype: INT32 shape: 1000000 "
      "default_value { int64s: 1 } }");
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ((*plan)->outputs()[0].default_values->int64s.capacity(), 1u);
}

}  // namespace
}  // namespace systole
