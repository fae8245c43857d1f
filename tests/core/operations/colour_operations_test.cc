// Tests operations on colours, values and labels without results of TensorFlow: types, refusals,
// draws.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/operations/canonical_spec.h"
#include "core/operations/lowered_program.h"
#include "core/operations/program.h"
#include "core/operations/program_runner.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

absl::StatusOr<Program> Compile(const std::string& transforms, ValueType input) {
  v1::Output output;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(transforms, &output)) << transforms;
  const std::vector<int64_t> shape = input.shape;
  return Program::Create(output.transforms(), std::move(input), shape);
}

ExampleKey Record(int64_t record) { return {.seed = 5, .epoch = 1, .record = record}; }

constexpr char kDecode[] = "transforms { decode_raw {} } ";

// The result of `transforms` on uint8 values.
Value MakeOfUint8(const std::string& transforms, std::vector<int64_t> shape,
                  const std::vector<uint8_t>& values, int64_t record = 0) {
  v1::Output output;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kDecode + transforms, &output));
  const absl::StatusOr<Program> program = Program::Create(output.transforms(), {}, shape);
  EXPECT_THAT(program, IsOk()) << transforms;
  Value input;
  const std::string bytes(values.begin(), values.end());
  input.bytes = bytes;
  absl::StatusOr<Value> value = program->Interpret(std::move(input), Record(record));
  EXPECT_THAT(value, IsOk()) << transforms;
  return *std::move(value);
}

Value MakeOfFloats(const std::string& transforms, std::vector<int64_t> shape,
                   std::vector<float> values, int64_t record = 0) {
  Value input;
  input.type = {.element = ElementType::kFloat32, .shape = std::move(shape)};
  input.floats = std::move(values);
  const absl::StatusOr<Program> program = Compile(transforms, input.type);
  EXPECT_THAT(program, IsOk()) << transforms;
  absl::StatusOr<Value> value = program->Interpret(std::move(input), Record(record));
  EXPECT_THAT(value, IsOk()) << transforms;
  return *std::move(value);
}

absl::StatusOr<Value> MakeOfInt64s(const std::string& transforms, std::vector<int64_t> values) {
  Value input;
  input.type = {.element = ElementType::kInt64, .shape = {static_cast<int64_t>(values.size())}};
  input.int64s = std::move(values);
  const absl::StatusOr<Program> program = Compile(transforms, input.type);
  EXPECT_THAT(program, IsOk()) << transforms;
  return program->Interpret(std::move(input), Record(0));
}

// Returns the bytes that a feed makes from these int64 values.
absl::StatusOr<std::vector<uint8_t>> FeedInt64s(const std::string& transforms, DType dtype,
                                                const std::vector<int64_t>& values) {
  absl::StatusOr<Program> program = Compile(
      transforms, {.element = ElementType::kInt64, .shape = {static_cast<int64_t>(values.size())}});
  EXPECT_THAT(program, IsOk()) << transforms;
  const LoweredProgram lowered =
      Lower(std::make_shared<const Program>(*std::move(program)), dtype, /*read_soon=*/false);
  absl::StatusOr<ProgramRunner> runner = ProgramRunner::Create(lowered, nullptr);
  EXPECT_THAT(runner, IsOk());
  std::vector<uint8_t> out(
      static_cast<size_t>(lowered.program->output().num_elements() * DTypeBytes(dtype)));
  std::vector<uint8_t> pixels;
  const absl::Status status =
      runner->Run(lowered, {.int64s = values}, Record(0), pixels, absl::MakeSpan(out));
  if (!status.ok()) return status;
  return out;
}

TEST(ColourOperationsTest, EachOperationHasItsExpectedOutputType) {
  const ValueType grey = {.element = ElementType::kUint8, .shape = {4, 5, 1}};
  const ValueType colour = {.element = ElementType::kFloat32, .shape = {4, 5, 3}};
  const ValueType labels = {.element = ElementType::kInt64, .shape = {2}};
  const auto type_of = [](const std::string& operation, const ValueType& input) {
    const absl::StatusOr<Program> program = Compile("transforms { " + operation + " }", input);
    EXPECT_THAT(program, IsOk()) << operation;
    return program->output();
  };
  for (const ValueType& input : {grey, colour}) {
    for (const char* operation : {"contrast { factor_max: 2 }", "gamma { gamma_max: 2 }",
                                  "clip_by_value { max: 2 }", "random_erasing {}"}) {
      EXPECT_EQ(type_of(operation, input), input) << operation;
    }
    EXPECT_EQ(type_of("per_image_standardization {}", input),
              (ValueType{ElementType::kFloat32, input.shape}));
  }
  for (const char* operation : {"saturation { factor_max: 2 }", "hue { delta_max: 0.5 }"}) {
    EXPECT_EQ(type_of(operation, colour), colour) << operation;
  }
  EXPECT_EQ(type_of("grayscale {}", colour), (ValueType{ElementType::kFloat32, {4, 5, 1}}));
  EXPECT_EQ(type_of("grayscale { channels: 3 }", colour), colour);
  EXPECT_EQ(type_of("cast { dtype: FLOAT32 }", grey),
            (ValueType{ElementType::kFloat32, {4, 5, 1}}));
  EXPECT_EQ(type_of("cast { dtype: UINT8 }", labels), (ValueType{ElementType::kUint8, {2}}));
  EXPECT_EQ(type_of("one_hot { depth: 7 }", labels), (ValueType{ElementType::kFloat32, {2, 7}}));
  EXPECT_EQ(type_of("label_map { keys: 1 values: 2 }", labels), labels);
  // If the size of the images is unknown, the size of the result is unknown, too.
  const absl::StatusOr<Program> any = Compile(
      "transforms { decode_jpeg {} } transforms { grayscale {} } transforms { contrast { "
      "factor_max: 2 } } transforms { per_image_standardization {} }",
      {});
  ASSERT_THAT(any, IsOk());
  EXPECT_EQ(any->output(), (ValueType{ElementType::kFloat32, {kAnySize, kAnySize, 1}}));
}

TEST(ColourOperationsTest, ClipWithEqualBoundsSetsEveryValueToTheBound) {
  EXPECT_THAT(
      MakeOfFloats("transforms { clip_by_value { min: 2 max: 2 } }", {1, 1, 3}, {-1, 2, 9}).floats,
      testing::ElementsAre(2, 2, 2));
}

TEST(ColourOperationsTest, InvalidParametersAreRefusedByName) {
  const ValueType image = {.element = ElementType::kUint8, .shape = {4, 5, 3}};
  const ValueType grey = {.element = ElementType::kFloat32, .shape = {4, 5, 1}};
  const ValueType label = {.element = ElementType::kInt64};
  const auto refuses = [](const std::string& operation, const ValueType& input,
                          const std::string& message) {
    EXPECT_THAT(Compile("transforms { " + operation + " }", input),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << operation;
  };
  refuses("contrast {}", image, "transforms[0] contrast makes all values equal to the mean");
  refuses("contrast { factor_min: 2 factor_max: 1 }", image,
          "contrast has factor_min: 2 and factor_max: 1, want finite numbers, the smaller");
  refuses("contrast { factor_min: nan factor_max: 1 }", image, "factor_min: nan");
  refuses("contrast { factor_min: -3e38 factor_max: 3e38 }", image, "want finite numbers");
  refuses("saturation {}", image, "leaves no colour");
  refuses("saturation { factor_min: -1 factor_max: 1 }", image,
          "factor_min: -1 and factor_max: 1, want finite numbers of 0 or more, the smaller");
  refuses("saturation { factor_max: inf }", image, "factor_max: inf");
  refuses("saturation { factor_max: 1 }", grey, "needs images of 3 channels, but gets grey ones");
  refuses("hue {}", image, "does not change the hue");
  refuses("hue { delta_max: 1.5 }", image,
          "delta_max: 1.5, want finite numbers of -1 or more and 1 or less");
  refuses("hue { delta_max: 0.5 }", grey, "3 channels");
  refuses("gamma {}", image, "set gamma_min and gamma_max");
  refuses("gamma { gamma_min: -1 gamma_max: 1 }", image, "of 0 or more");
  refuses("gamma { gamma_max: 1 gain: inf }", image, "gain is inf, want a finite number");
  refuses("grayscale { channels: 2 }", image, "channels is 2, want 1 or 3");
  refuses("grayscale {}", grey, "3 channels");
  refuses("per_image_standardization {}", label, "gets int64");
  refuses("cast {}", image, "has no dtype, want UINT8 or FLOAT32");
  refuses("cast { dtype: BFLOAT16 }", image, "has dtype BFLOAT16, want UINT8 or FLOAT32");
  refuses("cast { dtype: FLOAT32 scale: true }", label, "has scale, but gets int64 values");
  refuses("clip_by_value { min: 2 max: 1 }", image, "has min: 2 and max: 1, want min <= max");
  refuses("clip_by_value { min: nan max: 1 }", grey, "want min <= max");
  refuses("clip_by_value { max: 0.5 }", image, "want whole numbers from 0 to 255");
  refuses("clip_by_value { max: 256 }", image, "want whole numbers from 0 to 255");
  refuses("random_erasing { probability: 1.5 }", image, "probability is 1.5");
  refuses("random_erasing { area_min: 0.5 }", image, "area_min: 0.5 and area_max: 0.33");
  refuses("random_erasing { aspect_max: 5000 }", image, "aspect_max: 5000");
  refuses("random_erasing { value: inf }", grey, "value: inf, want finite numbers");
  refuses("random_erasing { value: [1, 2] }", image, "has 2 values of value, want 1 or 3");
  refuses("random_erasing { value: [1, 2, 3] }", grey, "has 3 values of value, want 1");
  refuses("random_erasing { value: 0.5 }", image, "value: 0.5, want whole numbers");
  refuses("one_hot {}", label, "depth is 0, want 1 to 4194304");
  refuses("one_hot { depth: 4194305 }", label, "depth is 4194305");
  refuses("one_hot { depth: 2 on_value: nan }", label, "want finite numbers");
  refuses("one_hot { depth: 2 }", image, "needs an int64 feature, but gets uint8");
  refuses("one_hot { depth: 4194304 }", {.element = ElementType::kInt64, .shape = {2}},
          "want a result of at most 4194304 values");
  refuses("one_hot { depth: 1 }", {.element = ElementType::kInt64, .shape = {1, 1, 1, 1, 1, 1}},
          "an input of at most 5 dimensions");
  refuses("label_map {}", label, "has 0 keys and 0 values, want 1 to 65536");
  refuses("label_map { keys: [1, 2] values: 1 }", label, "has 2 keys and 1 values");
  refuses("label_map { keys: [1, 2, 1] values: [1, 2, 3] }", label, "has the key 1 twice");
  refuses("label_map { keys: 1 values: 1 }", grey, "needs an int64 feature, but gets float32");
}

TEST(ColourOperationsTest, AFactorIsDrawnWithinItsBoundsAndOncePerExample) {
  std::vector<float> factors;
  for (int64_t record = 0; record < 60; ++record) {
    // The mean of the values is 0, so contrast only multiplies each value by the factor.
    const Value value = MakeOfFloats("transforms { contrast { factor_min: -2 factor_max: 3 } }",
                                     {2, 2, 1}, {1, -1, 1, -1}, record);
    EXPECT_EQ(value.floats[0], -value.floats[1]);
    EXPECT_EQ(value.floats[0], value.floats[2]);
    factors.push_back(value.floats[0]);
  }
  EXPECT_THAT(factors, Each(AllOf(Ge(-2), Le(3))));
  EXPECT_LT(*std::min_element(factors.begin(), factors.end()), -1);
  EXPECT_GT(*std::max_element(factors.begin(), factors.end()), 2);
}

TEST(ColourOperationsTest, ContrastAndBrightnessDrawDifferentNumbers) {
  int same = 0;
  for (int64_t record = 0; record < 50; ++record) {
    const Value contrast =
        MakeOfFloats("transforms { contrast { factor_max: 1 } }", {2, 1, 1}, {1, -1}, record);
    const Value brightness =
        MakeOfFloats("transforms { brightness { delta_max: 1 } }", {2, 1, 1}, {0, 0}, record);
    same += std::abs(contrast.floats[0] - brightness.floats[0]) < 0.01f ? 1 : 0;
  }
  EXPECT_LT(same, 5);
}

TEST(ColourOperationsTest, SaturationAndHueAcceptSubnormalNanAndInfiniteValues) {
  // To compute the hue, a number is divided by the range of the pixel's colours. A subnormal range
  // would make the hue infinite, so TensorFlow treats it as 0.
  const float tiny = std::numeric_limits<float>::denorm_min();
  for (const char* operation :
       {"saturation { factor_min: 2 factor_max: 2 }", "hue { delta_min: 0.5 delta_max: 0.5 }"}) {
    const Value value = MakeOfFloats(
        std::string("transforms { ") + operation + " }", {2, 2, 3},
        {0, tiny, 2 * tiny, NAN, NAN, NAN, INFINITY, INFINITY, -INFINITY, 3e38f, -3e38f, -3e38f});
    EXPECT_EQ(value.floats.size(), 12u);
    EXPECT_THAT(std::vector<float>(value.floats.begin(), value.floats.begin() + 3),
                Each(AllOf(Ge(0), Le(1e-37f))));
  }
}

TEST(ColourOperationsTest, AGreyPixelStaysGrey) {
  for (int grey = 0; grey < 256; ++grey) {
    const auto level = static_cast<uint8_t>(grey);
    const std::vector<uint8_t> pixel = {level, level, level};
    for (const char* operation :
         {"saturation { factor_min: 3 factor_max: 3 }", "hue { delta_min: 0.3 delta_max: 0.3 }",
          "contrast { factor_min: 4 factor_max: 4 }"}) {
      EXPECT_EQ(
          MakeOfUint8(std::string("transforms { ") + operation + " }", {1, 1, 3}, pixel).uint8s,
          pixel)
          << operation;
    }
  }
}

TEST(ColourOperationsTest, AnImageOfOneColourIsStandardizedToZero) {
  const Value value = MakeOfFloats("transforms { per_image_standardization {} }", {7, 9, 3},
                                   std::vector<float>(189, 0.1f));
  EXPECT_THAT(value.floats, Each(0.0f));
}

TEST(ColourOperationsTest, ErasingFillsOneRectangleWithinItsBounds) {
  const int height = 20, width = 30;
  int erased = 0;
  std::set<std::pair<int, int>> places;
  for (int64_t record = 0; record < 300; ++record) {
    const Value value = MakeOfUint8(
        "transforms { random_erasing { probability: 0.75 area_min: 0.1 area_max: 0.3 aspect_min: "
        "0.5 aspect_max: 2 value: [1, 2, 3] } }",
        {height, width, 3}, std::vector<uint8_t>(height * width * 3, 100), record);
    int top = height, bottom = -1, left = width, right = -1, count = 0;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const uint8_t* const pixel = &value.uint8s[static_cast<size_t>((y * width + x) * 3)];
        if (pixel[0] == 100) {
          EXPECT_EQ(pixel[1] + pixel[2], 200);
          continue;
        }
        EXPECT_THAT(std::vector<int>(pixel, pixel + 3), ElementsAre(1, 2, 3));
        top = std::min(top, y), bottom = std::max(bottom, y);
        left = std::min(left, x), right = std::max(right, x);
        ++count;
      }
    }
    if (count == 0) continue;
    ++erased;
    places.emplace(top, left);
    const int rows = bottom - top + 1, columns = right - left + 1;
    EXPECT_EQ(count, rows * columns);
    // Sides are rounded to whole pixels. So the drawn side may differ by half a pixel.
    EXPECT_GT((rows + 0.5) * (columns + 0.5), 0.1 * height * width);
    EXPECT_LT((rows - 0.5) * (columns - 0.5), 0.3 * height * width);
    EXPECT_GT((rows + 0.5) / (columns - 0.5), 0.5);
    EXPECT_LT((rows - 0.5) / (columns + 0.5), 2);
  }
  EXPECT_GT(erased, 190);  // 225 on average.
  EXPECT_LT(erased, 260);
  EXPECT_GT(places.size(), 100u);
}

TEST(ColourOperationsTest, ErasingLeavesAnImageUnchangedIfNoRectangleFits) {
  const std::vector<uint8_t> pixel = {7};
  for (int64_t record = 0; record < 20; ++record) {
    EXPECT_EQ(
        MakeOfUint8("transforms { random_erasing { probability: 1 area_min: 1 area_max: 1 } }",
                    {1, 1, 1}, pixel, record)
            .uint8s,
        pixel);
  }
}

TEST(ColourOperationsTest, LabelMapOfAnUnknownLabelIsDataLossUnlessItHasADefault) {
  EXPECT_THAT(MakeOfInt64s("transforms { label_map { keys: [5, 3] values: [0, 1] } }", {3, 4}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("label_map has no key 4")));
  const auto zero = MakeOfInt64s(
      "transforms { label_map { keys: [5, 3] values: [0, 1] default_value: 0 } }", {3, 4, 5});
  ASSERT_THAT(zero, IsOk());
  EXPECT_THAT(zero->int64s, ElementsAre(1, 0, 0));
}

TEST(ColourOperationsTest, LabelsKeepTheirValueToTheLastBit) {
  const std::vector<int64_t> large = {(int64_t{1} << 62) + 1, -(int64_t{1} << 53) - 1};
  const auto fed = FeedInt64s(
      "transforms { label_map { keys: 0 values: 0 default_value: 7 } }"
      "transforms { label_map { keys: 7 values: 4611686018427387905 } }",
      DType::kInt64, large);
  ASSERT_THAT(fed, IsOk());
  const auto* const values = reinterpret_cast<const int64_t*>(fed->data());
  EXPECT_EQ(values[0], (int64_t{1} << 62) + 1);
  EXPECT_EQ(values[1], (int64_t{1} << 62) + 1);
  EXPECT_THAT(
      FeedInt64s("transforms { label_map { keys: 1 values: 4294967296 } }", DType::kInt32, {1}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("value 4294967296 at index 0 does not fit int32")));
}

TEST(ColourOperationsTest, OneHotLabelsAreFedAsUint8AndBfloat16AndCanBeNormalised) {
  const std::string text =
      "transforms { label_map { keys: [10, 20] values: [0, 2] } } "
      "transforms { one_hot { depth: 3 } }";
  const auto bytes = FeedInt64s(text, DType::kUint8, {20, 10});
  EXPECT_THAT(bytes, IsOkAndHolds(ElementsAre(0, 0, 1, 1, 0, 0)));
  const auto wide = FeedInt64s(text, DType::kBfloat16, {20});
  EXPECT_THAT(wide, IsOkAndHolds(ElementsAre(0, 0, 0, 0, 0x80, 0x3f)));
  // The last normalize is done together with the cast.
  const auto normalised =
      FeedInt64s(text + "transforms { normalize { scale: 2 mean: -1 } }", DType::kUint8, {10});
  EXPECT_THAT(normalised, IsOkAndHolds(ElementsAre(3, 1, 1)));
}

TEST(ColourOperationsTest, ScratchOfContrastIsCounted) {
  const auto rest_of = [](const std::string& transforms) {
    absl::StatusOr<Program> program =
        Compile(transforms, {.element = ElementType::kFloat32, .shape = {64, 64, 3}});
    EXPECT_THAT(program, IsOk());
    return Lower(std::make_shared<const Program>(*std::move(program)), DType::kFloat32, false)
        .rest_bytes;
  };
  const int64_t bytes = 64 * 64 * 3 * 4;
  EXPECT_EQ(rest_of("transforms { gamma { gamma_max: 1 } }"), 2 * bytes);
  EXPECT_GE(rest_of("transforms { contrast { factor_max: 1 } }"), 2 * bytes + bytes / 2);
}

TEST(TensorFlowSeedTest, DrawsDependOnlyOnTfSeedEpochAndRecord) {
  const auto made = [](const std::string& transforms, const ExampleKey& example) {
    Value input;
    input.type = {.element = ElementType::kFloat32, .shape = {2, 1, 1}};
    input.floats = {1, -1};
    const absl::StatusOr<Program> program = Compile(transforms, input.type);
    EXPECT_THAT(program, IsOk()) << transforms;
    return program->Interpret(std::move(input), example)->floats[0];
  };
  const std::string one = "transforms { contrast { factor_max: 1 } tf_seed: [3, 4] } ";
  const float value = made(one, {.seed = 1, .epoch = 2, .record = 3});
  EXPECT_EQ(made(one, {.seed = 9, .epoch = 2, .record = 3}), value);
  EXPECT_NE(made(one, {.seed = 1, .epoch = 3, .record = 3}), value);
  EXPECT_NE(made(one, {.seed = 1, .epoch = 2, .record = 4}), value);
  EXPECT_NE(made("transforms { contrast { factor_max: 1 } tf_seed: [3, 5] }",
                 {.seed = 1, .epoch = 2, .record = 3}),
            value);
  // A second operation with the same tf_seed draws the same factor.
  EXPECT_FLOAT_EQ(made(one + one, {.seed = 1, .epoch = 2, .record = 3}), value * value);
}

TEST(TensorFlowSeedTest, InvalidTfSeedsAndTfSeedsOfNonStatelessOpsAreRefused) {
  const ValueType image = {.element = ElementType::kUint8, .shape = {4, 5, 3}};
  const auto refuses = [&image](const std::string& transform, const std::string& message) {
    EXPECT_THAT(Compile("transforms { " + transform + " }", image),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << transform;
  };
  refuses("random_flip {} tf_seed: 1", "random_flip has a tf_seed of 1 values, want 2");
  refuses("random_flip {} tf_seed: [1, 2] key: 'k'", "has a key and a tf_seed, want one of them");
  for (const char* const operation :
       {"random_resized_crop { height: 2 width: 2 }", "gamma { gamma_max: 1 }", "random_erasing {}",
        "normalize {}"}) {
    refuses(std::string(operation) + " tf_seed: [1, 2]",
            "has a tf_seed, but is not one of TensorFlow's stateless random ops");
  }
}

TEST(ColourOperationsTest, WrittenAndOmittedDefaultsHaveTheSameFingerprint) {
  const auto fingerprint = [](const std::string& transform) {
    v1::FeedSpec spec;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "outputs { name: 'a' transforms { " + transform + " } }", &spec));
    return SpecFingerprint(spec);
  };
  const std::pair<const char*, const char*> same[] = {
      {"gamma { gamma_max: 2 }", "gamma { gamma_max: 2 gain: 1 }"},
      {"grayscale {}", "grayscale { channels: 1 }"},
      {"random_erasing {}", "random_erasing { probability: 0.5 aspect_max: 3.3 value: 0 }"},
      {"one_hot { depth: 3 }", "one_hot { depth: 3 on_value: 1 }"},
      {"label_map { keys: [2, 1] values: [5, 6] }", "label_map { keys: [1, 2] values: [6, 5] }"}};
  for (const auto& [one, other] : same) EXPECT_EQ(fingerprint(one), fingerprint(other)) << one;
  const char* const others[] = {
      "grayscale {}", "grayscale { channels: 3 }", "label_map { keys: 1 values: 2 }",
      // A default of 0 differs from no default.
      "label_map { keys: 1 values: 2 default_value: 0 }",
      // A feed refuses this map of 2 keys and 1 value, but the map has a canonical form.
      "label_map { keys: [1, 2] values: 2 }", "random_flip {}", "random_flip {} tf_seed: [0, 0]"};
  for (const char* one : others) {
    for (const char* other : others) {
      EXPECT_EQ(fingerprint(one) == fingerprint(other), one == other) << one << other;
    }
  }
}

}  // namespace
}  // namespace systole
