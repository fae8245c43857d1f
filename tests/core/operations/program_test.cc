#include "core/operations/program.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/interrupt/interrupt.h"
#include "core/operations/ops/operation_table.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/core/operations/plain_cast.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::StartsWith;

absl::StatusOr<Program> Compile(const std::string& text,
                                ElementType element = ElementType::kBytes) {
  v1::Output output;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &output)) << text;
  std::vector<int64_t> shape(output.shape().begin(), output.shape().end());
  ValueType input = {.element = element};
  if (element != ElementType::kBytes) input.shape = shape;
  return Program::Create(output.transforms(), input, shape);
}

// The result of `text` on `stored`, an image of 4 x 5 grey pixels.
Value MakeOf(const std::string& text, const std::string& stored, const ExampleKey& example) {
  const absl::StatusOr<Program> program =
      Compile("shape: [4, 5, 1] transforms { decode_raw {} }" + text);
  EXPECT_THAT(program, IsOk()) << text;
  Value input;
  input.bytes = stored;
  absl::StatusOr<Value> value = program->Interpret(std::move(input), example);
  EXPECT_THAT(value, IsOk()) << text;
  return *std::move(value);
}

std::string Ramp() {
  std::string pixels;
  for (int i = 0; i < 20; ++i) pixels.push_back(static_cast<char>(12 * i));
  return pixels;
}

ExampleKey Record(int64_t record) { return {.seed = 5, .epoch = 1, .record = record}; }

constexpr char kWindow[] = "transforms { random_crop { height: 2 width: 2 } }";
constexpr char kOtherWindow[] = "transforms { random_crop { height: 2 width: 2 } key: 'b' }";
constexpr char kFlip[] = "transforms { random_flip {} }";

TEST(ProgramTest, EveryTransformHasATableRowAndDrawNumbersAreUnique) {
  const auto* const descriptor = v1::Transform::descriptor();
  const auto* const oneof = descriptor->FindOneofByName("kind");
  EXPECT_EQ(static_cast<int>(Operations().size()), oneof->field_count());
  std::vector<uint32_t> draws;
  for (int i = 0; i < oneof->field_count(); ++i) {
    const auto kind = static_cast<v1::Transform::KindCase>(oneof->field(i)->number());
    const OperationRow* const row = FindOperation(kind);
    ASSERT_NE(row, nullptr) << oneof->field(i)->name();
    EXPECT_EQ(OperationName(kind), oneof->field(i)->name());
    if (row->draws != 0) draws.push_back(row->draws);
  }
  std::sort(draws.begin(), draws.end());
  EXPECT_EQ(std::adjacent_find(draws.begin(), draws.end()), draws.end());
}

TEST(ProgramTest, TypesFollowFromTheTransforms) {
  const auto program = Compile(
      "transforms { decode_jpeg { channels: 1 } } transforms { random_crop { height: 9 width: 8 } "
      "} "
      "transforms { resize { height: 3 width: 2 } } transforms { round_to_uint8 {} } "
      "transforms { normalize {} }");
  ASSERT_THAT(program, IsOk());
  std::vector<ValueType> types;
  for (const Program::Step& step : program->steps()) types.push_back(step.output);
  EXPECT_THAT(types, ElementsAre(ValueType{ElementType::kUint8, {kAnySize, kAnySize, 1}},
                                 ValueType{ElementType::kUint8, {9, 8, 1}},
                                 ValueType{ElementType::kFloat32, {3, 2, 1}},
                                 ValueType{ElementType::kUint8, {3, 2, 1}},
                                 ValueType{ElementType::kFloat32, {3, 2, 1}}));
}

TEST(ProgramTest, RandomCropCopiesAWindowFromEveryPossiblePlace) {
  const std::string ramp = Ramp();
  std::vector<int> firsts;
  for (int64_t record = 0; record < 60; ++record) {
    const Value cut = MakeOf(kWindow, ramp, Record(record));
    const std::vector<uint8_t>& pixels = cut.uint8s;
    ASSERT_EQ(pixels.size(), 4);
    EXPECT_EQ(pixels[1], pixels[0] + 12);
    EXPECT_EQ(pixels[2], pixels[0] + 5 * 12);
    EXPECT_EQ(pixels[3], pixels[0] + 6 * 12);
    firsts.push_back(pixels[0] / 12);
  }
  std::sort(firsts.begin(), firsts.end());
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  // Every possible place of the window occurs, and no other place.
  EXPECT_THAT(firsts, ElementsAre(0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13));
}

TEST(ProgramTest, BrightnessDoesNotChangeTheDrawsOfRandomCrop) {
  for (int64_t record = 0; record < 20; ++record) {
    EXPECT_EQ(MakeOf(std::string("transforms { brightness { delta_max: 1e-6 } }") + kWindow, Ramp(),
                     Record(record))
                  .uint8s,
              MakeOf(kWindow, Ramp(), Record(record)).uint8s);
  }
}

TEST(ProgramTest, RepeatedTransformsAndTransformsWithAKeyDrawDifferently) {
  int same_twice = 0;
  int same_keyed = 0;
  int flips_cancel = 0;
  for (int64_t record = 0; record < 100; ++record) {
    const ExampleKey key = Record(record);
    const std::vector<uint8_t> first = MakeOf(kWindow, Ramp(), key).uint8s;
    // The first crop keeps the whole image, so the second crop has the same choice of places as
    // kWindow alone.
    const Value twice = MakeOf(
        std::string("transforms { random_crop { height: 4 width: 5 } }") + kWindow, Ramp(), key);
    same_twice += twice.uint8s == first ? 1 : 0;
    same_keyed += MakeOf(kOtherWindow, Ramp(), key).uint8s == first ? 1 : 0;
    const Value flipped = MakeOf(std::string(kFlip) + kFlip, Ramp(), key);
    flips_cancel += flipped.uint8s == MakeOf("", Ramp(), key).uint8s ? 1 : 0;
  }
  EXPECT_LT(same_twice, 30);
  EXPECT_LT(same_keyed, 30);
  // Two flips with equal draws would cancel in all 100 records.
  EXPECT_GT(flips_cancel, 30);
  EXPECT_LT(flips_cancel, 70);
}

TEST(ProgramTest, TwoOutputsOfARecordDrawAlike) {
  const std::string mask(20, 'm');
  for (int64_t record = 0; record < 20; ++record) {
    // The mask has the same transforms as the image, so both are cut at the same place.
    std::string marked = mask;
    const Value image = MakeOf(kWindow, Ramp(), Record(record));
    marked[image.uint8s[0] / 12] = '!';
    EXPECT_EQ(MakeOf(kWindow, marked, Record(record)).uint8s[0], '!');
  }
}

TEST(ProgramTest, BrightnessOfUint8SaturatesAndOfFloat32DoesNot) {
  const std::string more = "transforms { brightness { delta_min: 0.5 delta_max: 0.5 } }";
  const Value bright = MakeOf(more, Ramp(), Record(0));
  EXPECT_EQ(bright.type.element, ElementType::kUint8);
  EXPECT_EQ(bright.uint8s[0], 127);  // 0.5 * 255.5, rounded down.
  EXPECT_EQ(bright.uint8s[1], 139);
  EXPECT_EQ(bright.uint8s[19], 255);
  const Value floats = MakeOf("transforms { normalize {} }" + more, Ramp(), Record(0));
  EXPECT_EQ(floats.floats[0], 0.5f);
  EXPECT_EQ(floats.floats[19], 228.5f);
}

TEST(ProgramTest, BrightnessDrawsWithinItsRangeAndOncePerExample) {
  std::vector<float> deltas;
  for (int64_t record = 0; record < 50; ++record) {
    const Value value = MakeOf(
        "transforms { normalize {} } transforms { brightness { delta_min: -2 delta_max: 3 } }",
        std::string(20, '\0'), Record(record));
    EXPECT_THAT(value.floats, Each(value.floats[0]));
    deltas.push_back(value.floats[0]);
  }
  EXPECT_THAT(deltas, Each(AllOf(Ge(-2), Le(3))));
  EXPECT_LT(*std::min_element(deltas.begin(), deltas.end()), -1);
  EXPECT_GT(*std::max_element(deltas.begin(), deltas.end()), 2);
}

TEST(ProgramTest, InvalidTransformsAreRefusedByIndexAndNameWithAReason) {
  // The transform is number 1 of its program, or number 2 behind a random_flip.
  const auto refuses = [](const std::string& transform, const std::string& reason) {
    const std::string name = transform.substr(0, transform.find(' '));
    for (const auto& [before, index] : {std::pair("", 1), {kFlip, 2}}) {
      EXPECT_THAT(Compile(absl::StrCat("shape: [4, 5, 1] transforms { decode_raw {} } ", before,
                                       " transforms { ", transform, " }")),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           AllOf(StartsWith(absl::StrCat("transforms[", index, "] ", name, " ")),
                                 HasSubstr(reason))));
    }
  };
  refuses("brightness { delta_min: 1 }", "has delta_min: 1 and delta_max: 0");
  refuses("brightness {}", "does not change the brightness; set delta_min or delta_max");
  refuses("brightness { delta_min: nan delta_max: 1 }", "want finite numbers");
  refuses("brightness { delta_min: -3e38 delta_max: 3e38 }", "want finite numbers");
  refuses("random_crop { height: 2 }", "has height: 2 and width: 0");
  refuses("random_crop { height: 5 width: 5 }", "but gets images of 4 x 5 pixels");
  refuses("normalize { mean: [1, 2, 3] }", "has 3 values of mean, want 1");
  refuses("decode_raw {}", "needs a bytes feature as it is stored");
}

TEST(ProgramTest, AnImageSmallerThanItsCropIsDataLoss) {
  // The size of a decoded JPEG is not known before it is decoded.
  const auto program =
      Compile("transforms { decode_jpeg {} } transforms { random_crop { height: 9 width: 9 } }");
  ASSERT_THAT(program, IsOk());
  Value image = Value::Create(ElementType::kUint8, {4, 20, 3});
  EXPECT_THAT(program->Interpret(std::move(image), Record(0), 1),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("random_crop needs 9 x 9 pixels, the image has 4 x 20")));
}

TEST(ProgramTest, NormalizingAHugeImageBeforeAResizeIsRefused) {
  const auto program = Compile(
      "transforms { decode_jpeg {} } transforms { normalize {} } "
      "transforms { resize { height: 2 width: 2 } }");
  ASSERT_THAT(program, IsOk());
  Value image;
  image.type = {.element = ElementType::kUint8, .shape = {3000, 3000, 3}};
  EXPECT_THAT(program->Interpret(std::move(image), Record(0), 1),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("3000 x 3000"), HasSubstr("crop or resize before"))));
}

TEST(ProgramTest, CastsRoundHalfToEven) {
  Value value = Value::Create(ElementType::kFloat32, {6});
  value.floats = {0.5f, 1.5f, -3.0f, 254.5f, 300.0f, 2.4f};
  std::vector<uint8_t> bytes(6);
  CastPlainly(value, DType::kUint8, absl::MakeSpan(bytes));
  EXPECT_THAT(bytes, ElementsAre(0, 2, 0, 254, 255, 2));
  std::vector<uint8_t> floats(24);
  CastPlainly(value, DType::kFloat32, absl::MakeSpan(floats));
  EXPECT_EQ(std::memcmp(floats.data(), value.floats.data(), 24), 0);
}

// In arithmetic, the sign of a NaN depends on the processor and on the compiler's order of
// operands. So the cast at the end of a program gives all NaNs the same bits.
TEST(ProgramTest, TheFinalCastGivesEveryNanTheSameBits) {
  Value value = Value::Create(ElementType::kFloat32, {3});
  value.floats = {std::bit_cast<float>(0xffc00000u), std::bit_cast<float>(0x7fc12345u), 1};
  std::vector<uint32_t> bits(3);
  CastPlainly(value, DType::kFloat32, absl::MakeSpan(reinterpret_cast<uint8_t*>(bits.data()), 12));
  EXPECT_THAT(bits, ElementsAre(0x7fc00000u, 0x7fc00000u, 0x3f800000u));
  std::vector<uint16_t> upper(3);
  CastPlainly(value, DType::kBfloat16, absl::MakeSpan(reinterpret_cast<uint8_t*>(upper.data()), 6));
  EXPECT_THAT(upper, ElementsAre(0x7fc0, 0x7fc0, 0x3f80));
}

TEST(ProgramTest, AnInterruptedProgramIsCancelledWhateverItsLastOperation) {
  for (const char* const transform :
       {"brightness { delta_max: 1 }", "gamma { gamma_min: 2 gamma_max: 2 }", "round_to_uint8 {}",
        "flip_left_right {}", "transpose {}", "pad { height: 9 width: 9 }", "rot90 { k: 1 }",
        "random_crop { height: 1 width: 1 }", "resize { height: 9 width: 9 }",
        "resize { height: 9 width: 9 method: LANCZOS3 }",
        "contrast { factor_min: 2 factor_max: 2 }", "per_image_standardization {}",
        "normalize {}"}) {
    const absl::StatusOr<Program> program = Compile(absl::StrCat(
        "shape: [4, 5, 1] transforms { decode_raw {} } transforms { ", transform, " }"));
    ASSERT_THAT(program, IsOk()) << transform;
    InterruptFlag unwanted;
    unwanted.Raise();
    const InterruptScope scope(unwanted);
    const std::string stored = Ramp();
    Value input;
    input.bytes = stored;
    EXPECT_THAT(program->Run(input, Record(0), 0, program->steps().size()).status(),
                StatusIs(absl::StatusCode::kCancelled, testing::_))
        << transform;
    EXPECT_THAT(program->Interpret(input, Record(0)).status(),
                StatusIs(absl::StatusCode::kCancelled, testing::_))
        << transform;
  }
}

}  // namespace
}  // namespace systole
