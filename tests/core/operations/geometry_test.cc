// Tests geometric operations without TensorFlow: types, refusals, images of a wrong size, draws.
// operations_golden_test.cc compares the values with TensorFlow's.
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/image/window/distorted_box.h"
#include "core/operations/lowered_program.h"
#include "core/operations/program.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

// Each of `transforms` is the content of one `transforms { .. }`.
absl::StatusOr<Program> Compile(const std::vector<std::string>& transforms,
                                std::vector<int64_t> shape = {}) {
  v1::Output output;
  for (const std::string& text : transforms) {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, output.add_transforms()))
        << text;
  }
  return Program::Create(output.transforms(), {.element = ElementType::kBytes}, shape);
}

// The error of `transform` on images of 4 x 6 pixels.
absl::Status ErrorOf(const std::string& transform) {
  return Compile({"decode_raw {}", transform}, {4, 6, 1}).status();
}

// The result of the transforms on a 4 x 6 image of 0, 1, .. 23.
Value MakeOf(std::vector<std::string> transforms, int64_t record = 0) {
  transforms.insert(transforms.begin(), "decode_raw {}");
  const absl::StatusOr<Program> program = Compile(transforms, {4, 6, 1});
  EXPECT_THAT(program, IsOk());
  std::string stored;
  for (char i = 0; i < 24; ++i) stored.push_back(i);
  Value input;
  input.bytes = stored;
  absl::StatusOr<Value> value =
      program->Interpret(std::move(input), {.seed = 9, .epoch = 0, .record = record});
  EXPECT_THAT(value, IsOk());
  return *std::move(value);
}

// The result of `transform` on a decoded image of height x width zeros.
absl::StatusOr<Value> MakeOfDecoded(const std::string& transform, int64_t height, int64_t width) {
  const absl::StatusOr<Program> program =
      Compile({"decode_jpeg {}", transform, "resize { height: 2 width: 2 }"});
  EXPECT_THAT(program, IsOk());
  return program->Interpret(Value::Create(ElementType::kUint8, {height, width, 3}), {}, 1, 2);
}

TEST(GeometryTest, OutputTypeAndSizeAreKnownUnlessTheSizeVariesByImage) {
  const auto type_of = [](const std::string& transform) {
    const auto program = Compile({"decode_raw {}", transform}, {4, 6, 3});
    EXPECT_THAT(program, IsOk()) << transform;
    return program->output();
  };
  const auto uint8 = ElementType::kUint8;
  const auto float32 = ElementType::kFloat32;
  const std::pair<const char*, ValueType> wants[] = {
      {"resize { height: 2 width: 3 method: NEAREST }", {uint8, {2, 3, 3}}},
      {"resize { height: 2 width: 3 method: AREA }", {float32, {2, 3, 3}}},
      {"resize { height: 8 width: 9 preserve_aspect_ratio: true }", {float32, {6, 9, 3}}},
      {"resize { height: 9 width: 9 preserve_aspect_ratio: true method: NEAREST }",
       {uint8, {6, 9, 3}}},
      {"resize_with_pad { height: 2 width: 9 }", {float32, {2, 9, 3}}},
      {"resize_with_pad { height: 2 width: 9 method: NEAREST }", {uint8, {2, 9, 3}}},
      {"random_resized_crop { height: 2 width: 9 method: NEAREST }", {uint8, {2, 9, 3}}},
      {"crop_or_pad { height: 7 width: 2 }", {uint8, {7, 2, 3}}},
      {"central_crop { fraction: 0.5 }", {uint8, {2, 4, 3}}},
      {"crop { height: 1 width: 2 offset_height: 3 offset_width: 4 }", {uint8, {1, 2, 3}}},
      {"pad { height: 5 width: 8 offset_height: 1 offset_width: 2 }", {uint8, {5, 8, 3}}},
      {"flip_left_right {}", {uint8, {4, 6, 3}}},
      {"flip_up_down {}", {uint8, {4, 6, 3}}},
      {"random_flip_up_down {}", {uint8, {4, 6, 3}}},
      {"transpose {}", {uint8, {6, 4, 3}}},
      {"rot90 {}", {uint8, {6, 4, 3}}},
      {"rot90 { k: 2 }", {uint8, {4, 6, 3}}},
  };
  for (const auto& [transform, want] : wants) EXPECT_EQ(type_of(transform), want) << transform;
  // The size of the result depends on each image's size, so the type has no size.
  for (const char* const transform :
       {"central_crop { fraction: 0.5 }", "transpose {}", "rot90 {}",
        "resize { height: 8 width: 9 preserve_aspect_ratio: true }"}) {
    const auto program = Compile({"decode_jpeg {}", transform});
    ASSERT_THAT(program, IsOk());
    EXPECT_THAT(program->output().shape, ElementsAre(kAnySize, kAnySize, 3)) << transform;
  }
}

TEST(GeometryTest, ErrorsForInvalidParametersSayWhatIsWanted) {
  const std::pair<const char*, const char*> refusals[] = {
      {"resize { height: 2 width: 2 method: NEAREST antialias: true }",
       "transforms[1] resize has antialias: true, which does nothing with method: NEAREST"},
      {"resize { height: 2 width: 2 method: AREA antialias: true }", "with method: AREA"},
      {"resize { height: 2 width: 2 antialias: true sampling: TF1 }", "leave one of them out"},
      {"resize { height: 2 width: 2 method: LANCZOS3 sampling: TF1 }",
       "has sampling: TF1 with method: LANCZOS3, want BILINEAR, NEAREST or BICUBIC"},
      {"resize { height: 2 width: 2 method: 77 }", "has method 77, want BILINEAR"},
      {"resize { height: 2 width: 2 sampling: 5 }", "has sampling 5, want HALF_PIXEL or TF1"},
      {"resize { height: 2 width: 2 preserve_aspect_ratio: true method: -1 }", "has method -1"},
      {"resize_with_pad { height: 2 }", "has height: 2 and width: 0"},
      {"resize_with_pad { height: 2 width: 2 method: AREA sampling: TF1 }", "want BILINEAR"},
      {"crop_or_pad { width: 2 }", "has height: 0 and width: 2"},
      {"central_crop {}", "fraction is 0, want 0 < fraction <= 1"},
      {"central_crop { fraction: 1.5 }", "fraction is 1.5"},
      {"central_crop { fraction: nan }", "fraction is nan"},
      {"crop { height: 2 width: 2 offset_height: -1 }",
       "has offset_height: -1 and offset_width: 0, want 0 to 16383 each"},
      {"crop { height: 3 width: 2 offset_height: 2 }",
       "has height: 3, width: 2, offset_height: 2 and offset_width: 0, but gets images of 4 x 6"},
      {"crop { height: 3 width: 2 offset_width: 5 }", "but gets images of 4 x 6"},
      {"pad { height: 4 width: 6 offset_height: 1 }", "but gets images of 4 x 6"},
      {"pad { height: 9 width: 9 offset_width: 2000000000 }", "want 0 to 16383"},
      {"rot90 { k: 4 }", "k is 4, want 1 to 3"},
      {"rot90 { k: -1 }", "k is -1, want 1 to 3"},
      {"flip_up_down {} key: 'a'", "has a key, but draws nothing"},
      {"random_resized_crop { height: 2 width: 2 rule: 9 }", "has rule 9, want TORCHVISION"},
      {"random_resized_crop { height: 2 width: 2 attempts: -1 }", "attempts is -1, want 1 to 1000"},
      {"random_resized_crop { height: 2 width: 2 min_object_covered: 0.1 }",
       "rule: TORCHVISION does not use it"},
      {"random_resized_crop { height: 2 width: 2 rule: TPU_RESNET min_object_covered: 2 }",
       "min_object_covered is 2, want 0 to 1"},
      {"random_resized_crop { height: 2 width: 3 rule: TPU_RESNET }", "want a square"},
      {"random_resized_crop { height: 2 width: 2 rule: TF_DISTORTED_BOX area_min: 2 }",
       "area_min: 2"},
      {"center_crop { height: 2 width: 2 rule: 4 }", "has rule 4, want FRACTION or TPU_RESNET"},
      {"center_crop { height: 2 width: 3 rule: TPU_RESNET }", "want a square"},
      {"center_crop { height: 2 width: 2 rule: TPU_RESNET fraction: 0.5 }",
       "computes the fraction"},
      {"center_crop { height: 2 width: 2 method: AREA antialias: true }", "leave it out"},
  };
  for (const auto& [transform, message] : refusals) {
    EXPECT_THAT(ErrorOf(transform), StatusIs(kInvalid, HasSubstr(message))) << transform;
  }
  for (const char* const transform :
       {"resize_with_pad { height: 2 width: 2 }", "crop_or_pad { height: 2 width: 2 }",
        "central_crop { fraction: 1 }", "crop { height: 2 width: 2 }", "pad { height: 2 width: 2 }",
        "flip_left_right {}", "flip_up_down {}", "random_flip_up_down {}", "transpose {}",
        "rot90 {}", "resize { height: 2 width: 2 preserve_aspect_ratio: true }"}) {
    EXPECT_THAT(Compile({"decode_raw {}", transform}, {7}).status(),
                StatusIs(kInvalid, HasSubstr("needs an image")))
        << transform;
  }
}

TEST(GeometryTest, ImagesThatDoNotFitACropOrPadAreDataLoss) {
  const std::string crop = "crop { height: 5 width: 6 offset_height: 1 offset_width: 2 }";
  EXPECT_THAT(MakeOfDecoded(crop, 6, 8), IsOk());
  EXPECT_THAT(MakeOfDecoded(crop, 5, 8),
              StatusIs(kDataLoss, AllOf(HasSubstr("crop needs rows up to 6"),
                                        HasSubstr("the image has 5 x 8 pixels"))));
  EXPECT_THAT(MakeOfDecoded(crop, 6, 7), StatusIs(kDataLoss, HasSubstr("columns up to 8")));
  const std::string pad = "pad { height: 5 width: 6 offset_height: 1 offset_width: 2 }";
  EXPECT_THAT(MakeOfDecoded(pad, 4, 4), IsOk());
  EXPECT_THAT(MakeOfDecoded(pad, 5, 4),
              StatusIs(kDataLoss, HasSubstr("pad has room for 4 x 4 pixels, the image has 5 x 4")));
  EXPECT_THAT(MakeOfDecoded(pad, 4, 5), StatusIs(kDataLoss, HasSubstr("the image has 4 x 5")));
}

// If a side of the result would have no pixel, TensorFlow fails. We give the side one pixel, so
// that a feed does not lose the record of a very long image.
TEST(GeometryTest, ASideThatWouldVanishKeepsOnePixel) {
  const auto padded = MakeOfDecoded("resize_with_pad { height: 10 width: 10 }", 1, 300);
  ASSERT_THAT(padded, IsOk());
  EXPECT_THAT(padded->type.shape, ElementsAre(10, 10, 3));
  const auto resized =
      MakeOfDecoded("resize { height: 10 width: 10 preserve_aspect_ratio: true }", 1, 300);
  ASSERT_THAT(resized, IsOk());
  EXPECT_THAT(resized->type.shape, ElementsAre(1, 10, 3));
  const auto cropped = MakeOfDecoded("central_crop { fraction: 1e-300 }", 2, 9);
  ASSERT_THAT(cropped, IsOk());
  EXPECT_THAT(cropped->type.shape, ElementsAre(2, 1, 3));
}

// If an image's size is known only from its record, the size of the result is checked when the
// example is made, before memory is allocated.
TEST(GeometryTest, ImagesOfVaryingSizeAreLimitedByTheirActualSize) {
  const std::string larger = "resize { height: 16384 width: 16384 preserve_aspect_ratio: true }";
  EXPECT_THAT(MakeOfDecoded(larger, 2, 2),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("16384 x 16384")));
  // The image of 2000 x 2000 pixels is allowed because its values are uint8: as float32 they would
  // take more than kMaxValueBytes.
  const std::string smaller = "resize { height: 8 width: 8 preserve_aspect_ratio: true }";
  EXPECT_THAT(MakeOfDecoded(smaller, 2000, 2000), IsOk());
}

// The input and the output are small (at most 2 MB each). But for each row of the result, the
// resize adds up rows of the input, and each of these rows is 60,000 pixels wide.
TEST(GeometryTest, TheTimeOfAResizeIsBounded) {
  EXPECT_THAT(MakeOfDecoded("resize { height: 300 width: 1 method: LANCZOS5 }", 11, 60000), IsOk());
  const std::string narrower = "resize { height: 16384 width: 1 method: LANCZOS5 }";
  EXPECT_THAT(MakeOfDecoded(narrower, 11, 60000),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("resizing 11 x 60000 pixels to 16384 x 1"),
                             HasSubstr("crop before it"))));
}

TEST(GeometryTest, RandomFlipUpDownIsFairAndIndependentOfRandomFlip) {
  const std::vector<uint8_t> upright = MakeOf({}).uint8s;
  const std::vector<uint8_t> turned = MakeOf({"flip_up_down {}"}).uint8s;
  int count = 0;
  int as_left_right = 0;
  for (int64_t record = 0; record < 200; ++record) {
    const std::vector<uint8_t> pixels = MakeOf({"random_flip_up_down {}"}, record).uint8s;
    EXPECT_TRUE(pixels == upright || pixels == turned);
    count += pixels == turned ? 1 : 0;
    // The two kinds of flips draw independently.
    const bool mirrored = MakeOf({"random_flip {}"}, record).uint8s != upright;
    as_left_right += mirrored == (pixels == turned) ? 1 : 0;
  }
  EXPECT_GT(count, 70);
  EXPECT_LT(count, 130);
  EXPECT_GT(as_left_right, 70);
  EXPECT_LT(as_left_right, 130);
}

// Each pixel of the image has a value of its own, so crops of different boxes differ.
TEST(GeometryTest, RandomResizedCropRulesDifferInBoxesAndFallbacks) {
  const auto crop_of = [](const std::string& rule) {
    return "random_resized_crop { height: 4 width: 4 method: NEAREST rule: " + rule + " }";
  };
  std::set<std::vector<uint8_t>> torchvision;
  std::set<std::vector<uint8_t>> tensorflow;
  for (int64_t record = 0; record < 50; ++record) {
    torchvision.insert(MakeOf({crop_of("TORCHVISION")}, record).uint8s);
    tensorflow.insert(MakeOf({crop_of("TF_DISTORTED_BOX")}, record).uint8s);
  }
  EXPECT_NE(torchvision, tensorflow);
  // With these ranges no box fits into the image. Then TF_DISTORTED_BOX takes the whole image, and
  // TPU_RESNET takes the centre.
  const std::string none = " aspect_min: 900 aspect_max: 900 area_min: 0.9";
  const std::vector<uint8_t> whole =
      MakeOf({"resize { height: 4 width: 4 method: NEAREST }"}).uint8s;
  EXPECT_EQ(MakeOf({crop_of("TF_DISTORTED_BOX" + none)}).uint8s, whole);
  const std::vector<uint8_t> centre =
      MakeOf({"center_crop { height: 4 width: 4 method: NEAREST rule: TPU_RESNET }"}).uint8s;
  EXPECT_EQ(MakeOf({crop_of("TPU_RESNET" + none)}).uint8s, centre);
  EXPECT_NE(centre, whole);
}

// If the box is as large as the image, TPU_RESNET takes the centre, as if no box was found. The
// reference code of TPU ResNet does the same.
TEST(GeometryTest, TpuResnetRuleTakesTheCentreIfTheBoxIsTheWholeImage) {
  const Value square = MakeOf({"crop { height: 4 width: 4 }",
                               "random_resized_crop { height: 8 width: 8 method: NEAREST rule: "
                               "TPU_RESNET area_min: 1 aspect_min: 1 aspect_max: 1 }"});
  const Value centre = MakeOf({"crop { height: 4 width: 4 }",
                               "center_crop { height: 8 width: 8 method: NEAREST rule: "
                               "TPU_RESNET }"});
  EXPECT_EQ(square.uint8s, centre.uint8s);
  EXPECT_EQ(PaddedCentreCrop(8, 4, 4), (CropRect{2, 2, 1, 1}));
}

LoweredProgram LowerOf(const std::vector<std::string>& transforms,
                       std::vector<int64_t> shape = {}) {
  absl::StatusOr<Program> program = Compile(transforms, std::move(shape));
  EXPECT_THAT(program, IsOk());
  return Lower(std::make_shared<const Program>(*std::move(program)), DType::kFloat32,
               /*read_soon=*/false);
}

TEST(GeometryTest, CropsAndFlipsAreFusedWithTheDecoding) {
  const std::string resize = "resize { height: 4 width: 5 }";
  for (const std::vector<std::string>& transforms :
       {std::vector<std::string>{"central_crop { fraction: 0.875 }", resize},
        {"crop { height: 9 width: 9 }", resize},
        {"crop { height: 9 width: 9 }", "flip_left_right {}"},
        {"central_crop { fraction: 0.5 }", "crop { height: 9 width: 9 offset_width: 2 }"},
        {resize, "flip_left_right {}", "normalize { mean: 3 }"},
        {"random_resized_crop { height: 4 width: 4 rule: TPU_RESNET }", "random_flip {}"},
        {"center_crop { height: 4 width: 4 rule: TPU_RESNET }"}}) {
    std::vector<std::string> all = {"decode_jpeg {}"};
    all.insert(all.end(), transforms.begin(), transforms.end());
    const LoweredProgram lowered = LowerOf(all);
    EXPECT_EQ(lowered.way, LoweredProgram::Way::kJpeg) << transforms[0];
    EXPECT_FALSE(lowered.has_rest()) << transforms[0];
  }
}

TEST(GeometryTest, OtherResizeMethodsAfterACropAreNotFused) {
  for (const std::string method : {"method: NEAREST", "method: AREA", "antialias: true",
                                   "sampling: TF1", "preserve_aspect_ratio: true"}) {
    const LoweredProgram lowered = LowerOf({"decode_jpeg {}", "crop { height: 9 width: 9 }",
                                            "resize { height: 4 width: 4 " + method + " }"});
    EXPECT_EQ(lowered.way, LoweredProgram::Way::kJpeg) << method;
    EXPECT_EQ(lowered.rest, 2) << method;
  }
}

}  // namespace
}  // namespace systole
