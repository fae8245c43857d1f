#include "core/operations/row_changes.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/interrupt/interrupt.h"
#include "core/operations/lowered_program.h"
#include "core/operations/program_runner.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/core/operations/plain_cast.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::Each;

// Images with few long rows and images with many short rows. RowChanges changes an image in parts.
// In the last two images, a single row is longer than the usual part.
const std::vector<std::vector<int64_t>> kShapes = {{97, 7, 3},   {30, 41, 1},  {1, 1, 3},
                                                   {12, 700, 3}, {2, 5000, 3}, {3, 9001, 1}};

Value ImageOf(const std::vector<int64_t>& shape) {
  Value image = Value::Create(ElementType::kFloat32, shape);
  CounterRng rng(1, 2, 3, 4);
  for (float& x : image.floats) x = rng.UniformFloat() * 2 - 0.5f;
  return image;
}

TEST(RowChangesTest, EachValueIsChangedOnceInWholeRowsAndThenUsed) {
  for (const std::vector<int64_t>& shape : kShapes) {
    Value image = Value::Create(ElementType::kFloat32, shape);
    const auto row = static_cast<size_t>(shape[1] * shape[2]);
    RowChanges changes;
    changes.Add([row](absl::Span<float> rows) {
      EXPECT_EQ(rows.size() % row, 0u);
      for (float& x : rows) x += 1;
    });
    changes.Add([](absl::Span<float> rows) {
      for (float& x : rows) x *= 3;
    });
    size_t used = 0;
    changes.Make(image, [&used](size_t first, absl::Span<const float> values) {
      EXPECT_EQ(first, used);
      EXPECT_THAT(values, Each(3.0f));
      used += values.size();
    });
    EXPECT_EQ(used, image.floats.size());
    EXPECT_THAT(image.floats, Each(3.0f));
    changes.Make(image);  // No change is left after the first call.
    EXPECT_THAT(image.floats, Each(3.0f));
  }
}

TEST(RowChangesTest, AnInterruptedThreadChangesNothingMore) {
  Value image = Value::Create(ElementType::kFloat32, {12, 700, 3});
  InterruptFlag flag;
  const InterruptScope scope(flag);
  RowChanges changes;
  int calls = 0;
  changes.Add([&](absl::Span<float>) {
    ++calls;
    flag.Raise();
  });
  changes.Make(image);
  EXPECT_EQ(calls, 1);
}

TEST(RowChangesTest, OperationsRunTogetherEqualTheReferenceInterpreter) {
  const std::string colour =
      "transforms { saturation { factor_max: 2 } } transforms { hue { delta_max: 0.5 } } ";
  const std::string all =
      "transforms { brightness { delta_max: 0.5 } } transforms { random_flip {} } "
      "transforms { contrast { factor_max: 2 } } transforms { flip_left_right {} } "
      "transforms { clip_by_value { min: 0 max: 1.5 } } transforms { gamma { gamma_max: 2 } } "
      "transforms { per_image_standardization {} } ";
  const std::string ends[] = {
      "", "transforms { normalize { mean: -0.1 scale: 0.7 } }",
      "transforms { normalize { scale: 200 } } transforms { round_to_uint8 {} } ",
      "transforms { flip_up_down {} } "};
  for (const std::vector<int64_t>& shape : kShapes) {
    const Value image = ImageOf(shape);
    for (const std::string& end : ends) {
      v1::Output output;
      ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
          all + (shape[2] == 3 ? colour : "") + end, &output));
      absl::StatusOr<Program> created = Program::Create(output.transforms(), image.type, shape);
      ASSERT_THAT(created, IsOk());
      const auto program = std::make_shared<const Program>(*std::move(created));
      for (int64_t record = 0; record < 4; ++record) {
        const ExampleKey example = {.seed = 5, .epoch = 1, .record = record};
        const auto want = program->Interpret(image, example);
        ASSERT_THAT(want, IsOk());
        const auto got = program->Run(image, example, 0, program->steps().size());
        ASSERT_THAT(got, IsOk());
        EXPECT_EQ(got->floats, want->floats) << end;
        EXPECT_EQ(got->uint8s, want->uint8s) << end;
        for (const DType dtype :
             {DType::kUint8, DType::kFloat32, DType::kBfloat16, DType::kFloat16}) {
          const LoweredProgram lowered = Lower(program, dtype, /*read_soon=*/false);
          absl::StatusOr<ProgramRunner> runner = ProgramRunner::Create(lowered, nullptr);
          ASSERT_THAT(runner, IsOk());
          std::vector<uint8_t> bytes(image.floats.size() * DTypeBytes(dtype));
          std::vector<uint8_t> pixels;
          ASSERT_THAT(runner->Run(lowered, {.floats = image.floats}, example, pixels,
                                  absl::MakeSpan(bytes)),
                      IsOk());
          std::vector<uint8_t> wanted(bytes.size());
          CastPlainly(*want, dtype, absl::MakeSpan(wanted));
          EXPECT_EQ(bytes, wanted) << end << static_cast<int>(dtype);
        }
      }
    }
  }
}

TEST(RowChangesTest, ClippingToMinusZeroKeepsTheSignInBfloat16) {
  v1::Output output;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "transforms { clip_by_value { min: -1 max: -0.0 } }", &output));
  Value image = Value::Create(ElementType::kFloat32, {1, 2, 1});
  image.floats = {5, std::numeric_limits<float>::quiet_NaN()};
  absl::StatusOr<Program> program =
      Program::Create(output.transforms(), image.type, image.type.shape);
  ASSERT_THAT(program, IsOk());
  const LoweredProgram lowered =
      Lower(std::make_shared<const Program>(*std::move(program)), DType::kBfloat16, false);
  absl::StatusOr<ProgramRunner> runner = ProgramRunner::Create(lowered, nullptr);
  ASSERT_THAT(runner, IsOk());
  std::vector<uint8_t> bytes(4);
  std::vector<uint8_t> pixels;
  ASSERT_THAT(runner->Run(lowered, {.floats = image.floats}, {}, pixels, absl::MakeSpan(bytes)),
              IsOk());
  EXPECT_EQ(bytes, (std::vector<uint8_t>{0x00, 0x80, 0xc0, 0x7f}));
}

}  // namespace
}  // namespace systole
