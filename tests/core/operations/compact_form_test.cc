#include "core/operations/compact_form.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/numeric/canonical_nan.h"
#include "core/numeric/value_table.h"
#include "core/operations/program.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/core/operations/plain_cast.h"
#include "tests/core/operations/random_program.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::ElementsAre;
using testing::Optional;

// Returns the compact form of a program whose feature has bytes: which last steps the client does,
// and by which numbers. `shape` is the stored shape. If the first transform is decode_jpeg, `shape`
// is ignored.
std::optional<CompactForm> FormOf(const std::string& transforms, DType dtype = DType::kFloat32,
                                  std::vector<int64_t> shape = {2, 2, 3}, size_t kept_steps = 0) {
  v1::Output output;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(transforms, &output)) << transforms;
  if (output.transforms(0).has_decode_jpeg()) shape.clear();
  const absl::StatusOr<Program> program =
      Program::Create(output.transforms(), {.element = ElementType::kBytes}, shape);
  EXPECT_THAT(program, IsOk());
  return program.ok() ? CompactFormOf(*program, dtype, kept_steps) : std::nullopt;
}

std::string Transforms(const std::vector<std::string>& each) {
  std::string text;
  for (const std::string& transform : each) text += "transforms { " + transform + " } ";
  return text;
}

const char kRaw[] = "decode_raw {}";
const char kCrop[] = "random_resized_crop { height: 4 width: 4 }";
const char kRound[] = "round_to_uint8 {}";
const char kNormalize[] = "normalize { mean: [1, 2, 3] }";

TEST(CompactFormTest, AFinalNormalizeBecomesAScaleAndABiasPerChannel) {
  const auto form = FormOf(Transforms({"decode_jpeg {}", kCrop, kRound, kNormalize}));
  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->first, 3u);
  EXPECT_THAT(form->factors.bias, ElementsAre(-1, -2, -3));
  EXPECT_THAT(form->factors.scale, ElementsAre(1, 1, 1));
  EXPECT_EQ(form->rules, 3);
  EXPECT_TRUE(form->table.empty());
}

TEST(CompactFormTest, AnEndThatOnlyCastsBecomesAScaleOfOne) {
  for (const std::vector<std::string>& end :
       {std::vector<std::string>{}, {"cast { dtype: FLOAT32 }"}, {"clip_by_value { max: 255 }"}}) {
    std::vector<std::string> transforms = {kRaw, "random_flip {}"};
    transforms.insert(transforms.end(), end.begin(), end.end());
    const auto form = FormOf(Transforms(transforms), DType::kBfloat16);
    ASSERT_TRUE(form.has_value());
    EXPECT_EQ(form->first, 2u);
    EXPECT_THAT(form->factors.scale, ElementsAre(1));
    EXPECT_THAT(form->factors.bias, ElementsAre(0));
    EXPECT_TRUE(form->table.empty());
  }
}

TEST(CompactFormTest, OtherPerValueOperationsBecomeATable) {
  const std::pair<std::vector<std::string>, int> kEnds[] = {
      {{"gamma { gamma_min: 2 gamma_max: 2 }", "normalize { stddev: 2 }"}, 1},
      {{"cast { dtype: FLOAT32 scale: true }", "gamma { gamma_min: 0.5 gamma_max: 0.5 gain: 3 }"},
       1},
      {{"brightness { delta_min: 0.25 delta_max: 0.25 }"}, 1},
      {{"clip_by_value { min: 3 max: 9 }"}, 1},
      {{"normalize { scale: 0.5 }", "round_to_uint8 {}"}, 1},
      {{kNormalize, "clip_by_value { min: -1 max: 2 }"}, 3},
      {{"cast { dtype: FLOAT32 scale: true }",
        "normalize { mean: [0.485, 0.456, 0.406] stddev: [0.229, 0.224, 0.225] }"},
       3}};
  for (const auto& [end, rules] : kEnds) {
    std::vector<std::string> transforms = {kRaw, "random_flip {}"};
    transforms.insert(transforms.end(), end.begin(), end.end());
    SCOPED_TRACE(Transforms(transforms));
    const auto form = FormOf(Transforms(transforms));
    ASSERT_TRUE(form.has_value());
    EXPECT_EQ(form->first, 2u);
    EXPECT_EQ(form->rules, rules);
    EXPECT_EQ(form->table.size(), static_cast<size_t>(rules * kTableEntries));
    EXPECT_TRUE(form->factors.scale.empty());
  }
}

TEST(CompactFormTest, TheClientDoesAsManyLastStepsAsPossible) {
  // The first rounding changes nothing, because its input is uint8. So the client can do all steps
  // after decode_raw, including the second rounding.
  const auto form = FormOf(
      Transforms({kRaw, kRound, "normalize { scale: 0.5 }", kRound, "normalize { mean: 2 }"}));
  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->first, 1u);
  // A client must begin from uint8 values. The resize and the gamma give floats, so the client
  // begins after the rounding.
  const auto resized =
      FormOf(Transforms({"decode_jpeg {}", "resize { height: 2 width: 2 }",
                         "gamma { gamma_min: 2 gamma_max: 2 }", kRound, "normalize { mean: 2 }"}));
  ASSERT_TRUE(resized.has_value());
  EXPECT_EQ(resized->first, 4u);
}

TEST(CompactFormTest, RandomOrMultiValueOperationsStayOnTheServer) {
  for (const char* const operation :
       {"gamma { gamma_min: 0.5 gamma_max: 2 }", "brightness { delta_min: -0.1 delta_max: 0.1 }",
        "contrast { factor_min: 2 factor_max: 2 }", "random_flip {}", "grayscale {}",
        "saturation { factor_min: 2 factor_max: 2 }", "hue { delta_min: 0.1 delta_max: 0.1 }",
        "trivial_augment {}", "random_erasing {}"}) {
    SCOPED_TRACE(operation);
    // From uint8 values the operation makes uint8 values, so the client can begin after it.
    const auto behind = FormOf(Transforms({kRaw, operation, "normalize { mean: 2 }"}));
    ASSERT_TRUE(behind.has_value());
    EXPECT_EQ(behind->first, 2u);
    // From floats the operation makes floats, so the client cannot begin after it.
    EXPECT_FALSE(
        FormOf(Transforms(
                   {kRaw, "cast { dtype: FLOAT32 }",
                    operation == std::string("trivial_augment {}") ? "random_flip {}" : operation}))
            .has_value());
  }
  EXPECT_FALSE(FormOf(Transforms({kRaw, "per_image_standardization {}"})).has_value());
}

TEST(CompactFormTest, PixelsThatAreOnlyMovedOrRepeatedHaveACompactForm) {
  for (const char* const transform :
       {"resize { height: 4 width: 4 method: NEAREST }", "crop_or_pad { height: 4 width: 4 }",
        "resize_with_pad { height: 4 width: 4 method: NEAREST }"}) {
    EXPECT_TRUE(
        FormOf(Transforms({"decode_jpeg {}", "rot90 {}", transform, kNormalize})).has_value())
        << transform;
  }
  EXPECT_FALSE(
      FormOf(Transforms({"decode_jpeg {}", "resize_with_pad { height: 4 width: 4 }"})).has_value());
}

TEST(CompactFormTest, Uint8OutputsFloatPixelsAndVaryingSizesHaveNoCompactForm) {
  EXPECT_FALSE(FormOf(Transforms({"decode_jpeg {}", kCrop, kRound}), DType::kUint8).has_value());
  EXPECT_FALSE(FormOf(Transforms({"decode_jpeg {}", kCrop, kNormalize})).has_value());
  // Without a crop or a resize, the size of the images varies.
  EXPECT_FALSE(FormOf(Transforms({"decode_jpeg {}"})).has_value());
}

TEST(CompactFormTest, NineChannelsGetFactorsButNoTable) {
  std::string mean = "1";
  for (int c = 2; c <= 9; ++c) mean += ", " + std::to_string(c);
  const std::string normalize = "normalize { mean: [" + mean + "] }";
  const auto factors = FormOf(Transforms({kRaw, normalize}), DType::kFloat32, {9});
  ASSERT_TRUE(factors.has_value());
  EXPECT_EQ(factors->rules, 9);
  const std::string clip = "clip_by_value { min: 3 max: 9 }";
  EXPECT_FALSE(FormOf(Transforms({kRaw, normalize, clip}), DType::kFloat32, {9}).has_value());
  // The client does only the last step, which needs no table.
  const auto end = FormOf(Transforms({kRaw, clip, normalize}), DType::kFloat32, {9});
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->first, 2u);
}

TEST(CompactFormTest, StepsThatMakeTheCachedValueStayOnTheServer) {
  const std::string transforms =
      Transforms({kRaw, "clip_by_value { min: 3 max: 9 }", "normalize { mean: 2 }"});
  const auto without = FormOf(transforms);
  ASSERT_TRUE(without.has_value());
  EXPECT_EQ(without->first, 1u);
  const auto with = FormOf(transforms, DType::kFloat32, {2, 2, 3}, 2);
  ASSERT_TRUE(with.has_value());
  EXPECT_EQ(with->first, 2u);
}

// The steps that belong to decode_jpeg { scale: AUTO } are decoding, crops and a resize. A client
// can do none of these steps in any case.
TEST(CompactFormTest, ScaleAutoDoesNotChangeWhichStepsTheClientDoes) {
  for (const std::string decode : {"decode_jpeg {}", "decode_jpeg { scale: AUTO }"}) {
    SCOPED_TRACE(decode);
    const auto one = FormOf(Transforms({decode, kCrop, kRound, "normalize { mean: 2 }"}));
    ASSERT_TRUE(one.has_value());
    EXPECT_EQ(one->first, 3u);
    const auto two = FormOf(
        Transforms({decode, "central_crop { fraction: 0.5 }", "resize { height: 4 width: 4 }",
                    kRound, "clip_by_value { min: 3 max: 9 }", "normalize { mean: 2 }"}));
    ASSERT_TRUE(two.has_value());
    EXPECT_EQ(two->first, 4u);
  }
}

// Computes the client's values from the sent values, by the definition in v1::CompactForm.
std::vector<uint8_t> Finished(const CompactForm& form, const Value& sent, DType dtype) {
  Value made = Value::Create(ElementType::kFloat32, sent.type.shape);
  const auto rules = static_cast<size_t>(form.rules);
  for (size_t i = 0; i < made.floats.size(); ++i) {
    const uint8_t x = sent.uint8s[i];
    const size_t c = i % rules;
    if (form.table.empty()) {
      const float product = static_cast<float>(x) * form.factors.scale[c];
      made.floats[i] = product + form.factors.bias[c];
    } else {
      made.floats[i] = form.table[c * kTableEntries + x];
    }
  }
  std::vector<uint8_t> out(made.floats.size() * static_cast<size_t>(DTypeBytes(dtype)));
  CastPlainly(made, dtype, absl::MakeSpan(out));
  return out;
}

// Draws programs as the fuzzer does. If a client can do a program's last steps, the client's values
// must equal those of the reference operations (Program::Interpret).
TEST(CompactFormTest, ValuesFinishedByAClientEqualThoseOfTheReferences) {
  std::mt19937 random(7);  // With this seed every run of the test draws the same programs.
  int finished = 0;
  int by_table = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> bytes(300);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    const RandomProgram drawn = DrawProgram(bytes);
    const std::shared_ptr<const Program> program = CompileDrawn(drawn);
    if (program == nullptr || !program->output().has_size()) continue;
    for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kFloat16}) {
      const std::optional<CompactForm> form = CompactFormOf(*program, dtype);
      if (!form.has_value()) break;
      Value input = {.type = program->input(), .bytes = drawn.stored};
      input.floats = drawn.floats;
      input.int64s = drawn.int64s;
      const auto sent = program->Interpret(input, drawn.example, 0, form->first);
      const auto whole = program->Interpret(input, drawn.example);
      ASSERT_EQ(sent.ok(), whole.ok());
      if (!sent.ok()) break;
      ASSERT_EQ(sent->type.element, ElementType::kUint8);
      std::vector<uint8_t> wanted(static_cast<size_t>(whole->type.num_elements()) *
                                  static_cast<size_t>(DTypeBytes(dtype)));
      CastPlainly(*whole, dtype, absl::MakeSpan(wanted));
      ASSERT_TRUE(Finished(*form, *sent, dtype) == wanted) << drawn.output.ShortDebugString();
      ++finished;
      by_table += form->table.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(finished, 300);
  EXPECT_GT(by_table, 100);
}

}  // namespace
}  // namespace systole
