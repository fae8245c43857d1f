#include "core/operations/kept_value.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Makes an output of "shape: .." or nothing, and of transforms, whose braces it adds.
v1::Output OutputOf(const std::string& shape, const std::vector<std::string>& transforms) {
  std::string text = shape;
  for (const std::string& transform : transforms) {
    absl::StrAppend(&text, " transforms { ", transform, " }");
  }
  v1::Output output;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &output)) << text;
  return output;
}

absl::StatusOr<KeptValue> KeptOf(const v1::Output& output,
                                 ElementType element = ElementType::kBytes) {
  const std::vector<int64_t> shape(output.shape().begin(), output.shape().end());
  ValueType input = {.element = element};
  if (element != ElementType::kBytes) input.shape = shape;
  const absl::StatusOr<Program> program = Program::Create(output.transforms(), input, shape);
  EXPECT_THAT(program, IsOk()) << output.ShortDebugString();
  return KeptValueOf(output, *program);
}

// The number of transforms after which the value is kept.
size_t StepsOf(const std::vector<std::string>& transforms, const std::string& shape = "") {
  const absl::StatusOr<KeptValue> kept = KeptOf(OutputOf(shape, transforms));
  EXPECT_THAT(kept, IsOk());
  return kept.ok() ? kept->steps : 0;
}

constexpr char kJpeg[] = "decode_jpeg {}";
constexpr char kResize[] = "resize { height: 8 width: 8 }";
constexpr char kRound[] = "round_to_uint8 {}";
constexpr char kRandomCrop[] = "random_crop { height: 4 width: 4 }";

TEST(KeptValueTest, IsTheLastUint8ImageBeforeTheFirstRandomStep) {
  EXPECT_EQ(StepsOf({kJpeg, "random_resized_crop { height: 8 width: 8 }"}), 1);
  EXPECT_EQ(StepsOf({kJpeg, "flip_left_right {}", "random_flip {}", kResize}), 2);
  EXPECT_EQ(StepsOf({kJpeg, kResize, kRound, kRandomCrop}), 3);
  // Floats are not kept.
  EXPECT_EQ(StepsOf({kJpeg, kResize, kRandomCrop, kRound}), 1);
  EXPECT_EQ(StepsOf({kJpeg, kResize, "normalize { mean: 3 }"}), 1);
  // No step draws, so the last value is kept.
  EXPECT_EQ(StepsOf({kJpeg, kResize, kRound}), 3);
  EXPECT_EQ(StepsOf({"decode_png {}", "crop { height: 4 width: 4 }"}), 2);
}

TEST(KeptValueTest, TakesTheFewestBytes) {
  const std::string pad = "pad { offset_height: 4 offset_width: 4 height: 16 width: 16 }";
  EXPECT_EQ(StepsOf({kJpeg, kResize, kRound, pad, kRandomCrop}), 3);
  EXPECT_EQ(StepsOf({kJpeg, kResize, kRound, pad, "crop { height: 6 width: 6 }", kRandomCrop}), 5);
  EXPECT_EQ(StepsOf({kJpeg, "grayscale {}", kRandomCrop}), 2);
  EXPECT_EQ(StepsOf({kJpeg, "central_crop { fraction: 0.5 }", "transpose {}", kRandomCrop}), 3);
  // Only a record shows which of the two values has fewer bytes.
  EXPECT_EQ(StepsOf({kJpeg, pad, kRandomCrop}), 2);
}

TEST(KeptValueTest, WhatDecodeRawCopiesIsNotWorthIt) {
  EXPECT_EQ(StepsOf({"decode_raw {}", "grayscale {}", kRandomCrop}, "shape: [8, 8, 3]"), 2);
  EXPECT_THAT(KeptOf(OutputOf("shape: [8, 8, 3]", {"decode_raw {}", kRandomCrop})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("has nothing to keep"), HasSubstr("put round_to_uint8"))));
  EXPECT_THAT(
      KeptOf(OutputOf("shape: [8, 8, 3]", {"decode_raw { stored: FLOAT32 }", "random_flip {}"})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no uint8 image is made")));
}

TEST(KeptValueTest, NumbersAreNoImages) {
  EXPECT_THAT(KeptOf(OutputOf("shape: [4, 4, 3]", {kRandomCrop}), ElementType::kFloat32),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the feature holds numbers")));
}

TEST(KeptValueTest, StepsThatAreOneAreNotParted) {
  const std::string scaled = "decode_jpeg { scale: AUTO }";
  EXPECT_EQ(StepsOf({scaled, kResize, kRound, kRandomCrop}), 3);
  for (const std::vector<std::string>& transforms :
       {std::vector<std::string>{scaled, "random_resized_crop { height: 8 width: 8 }", kRound},
        std::vector<std::string>{scaled, kResize, "random_flip {}"}}) {
    EXPECT_THAT(KeptOf(OutputOf("", transforms)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("use scale: FULL")));
  }
  // If anything else follows, AUTO is FULL.
  EXPECT_EQ(StepsOf({scaled, "random_flip {}", kResize}), 1);
}

TEST(KeptValueTest, EqualStepsHaveEqualTexts) {
  const auto made_by = [](const std::string& decode, const std::string& more = "") {
    std::vector<std::string> transforms = {decode};
    if (!more.empty()) transforms.push_back(more);
    transforms.emplace_back("random_crop { height: 4 width: 4 }");
    return KeptOf(OutputOf("", transforms))->made_by;
  };
  const std::string jpeg = made_by(kJpeg);
  EXPECT_EQ(made_by("decode_jpeg { channels: 3 }"), jpeg);
  EXPECT_EQ(made_by(kJpeg, "random_flip {}"), jpeg);
  EXPECT_NE(made_by("decode_jpeg { channels: 1 }"), jpeg);
  EXPECT_NE(made_by(kJpeg, "flip_left_right {}"), jpeg);
  const auto grey = [](const std::string& shape) {
    return KeptOf(OutputOf(shape, {"decode_raw {}", "grayscale {}"}))->made_by;
  };
  EXPECT_NE(grey("shape: [8, 8, 3]"), grey("shape: [4, 16, 3]"));
}

}  // namespace
}  // namespace systole
