// The time that an example takes is divided among the operations of its spec. These tests check
// which operations get time, for each way of making an example. A lap is the time from one reading
// of the clock to the next (lap_times.h). With the test's clock, each lap takes one second. So an
// operation's time in seconds is its number of laps, which does not depend on the machine.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/interrupt/lap_times.h"
#include "core/operations/lowered_program.h"
#include "core/operations/program_runner.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/core/image/png/png_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::Pair;
using Way = LoweredProgram::Way;

constexpr ExampleKey kExample = {.seed = 3, .epoch = 1, .record = 5};

// Maps an operation's number in the spec to its number of laps. Operations without a lap are left
// out.
using Laps = std::map<int, int64_t>;

Laps LapsOf(const LapTimes::Times& times) {
  Laps laps;
  for (int i = 0; i < LapTimes::kParts; ++i) {
    const int64_t count = absl::ToInt64Seconds(times.parts[static_cast<size_t>(i)]);
    if (count > 0) laps[i] = count;
  }
  return laps;
}

std::function<absl::Duration()> CountingClock() {
  return [asked = 0]() mutable { return absl::Seconds(asked++); };
}

Program ProgramOf(const std::string& transforms, const ValueType& input) {
  v1::Output output;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(transforms, &output));
  absl::StatusOr<Program> program = Program::Create(output.transforms(), input, input.shape);
  EXPECT_THAT(program, IsOk());
  return *std::move(program);
}

// Makes the same example three times by `program`. Returns the laps of the second time. The first
// and the third time are not measured.
Laps MeasuredLaps(Program program, DType dtype, Way way, const ProgramRunner::Input& input) {
  const LoweredProgram lowered =
      Lower(std::make_shared<const Program>(std::move(program)), dtype, /*read_soon=*/false);
  EXPECT_EQ(lowered.way, way);
  absl::StatusOr<ProgramRunner> runner = ProgramRunner::Create(lowered, nullptr);
  EXPECT_THAT(runner, IsOk());
  const auto make = [&] {
    std::vector<uint8_t> out(static_cast<size_t>(lowered.program->output().num_elements()) *
                             DTypeBytes(dtype));
    std::vector<uint8_t> pixels;
    EXPECT_THAT(runner->Begin(lowered, input.bytes, kExample), IsOk());
    EXPECT_THAT(runner->Run(lowered, input, kExample, pixels, absl::MakeSpan(out)), IsOk());
    return out;
  };
  const std::vector<uint8_t> before = make();
  const std::function<absl::Duration()> clock = CountingClock();
  LapTimes::Times times;
  {
    LapTimes laps(clock);
    EXPECT_EQ(make(), before);
    times = laps.Take();
  }
  EXPECT_EQ(make(), before);
  return LapsOf(times);
}

std::string Jpeg(int width, int height) {
  std::vector<uint8_t> pixels(static_cast<size_t>(width) * height * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * i >> 9);
  return *EncodeJpeg(pixels, width, height, 3, {});
}

Laps JpegLaps(const std::string& transforms, Way way) {
  const std::string jpeg = Jpeg(64, 48);
  return MeasuredLaps(ProgramOf(transforms, {.element = ElementType::kBytes}), DType::kFloat32, way,
                      {.bytes = jpeg});
}

// Returns the laps of an example from a feature of floats. Each of its operations runs row by row
// or alone (v1::TransformRun).
Laps FloatLaps(const std::string& transforms, const std::vector<int64_t>& shape) {
  const ValueType type = {.element = ElementType::kFloat32, .shape = shape};
  const std::vector<float> floats(static_cast<size_t>(type.num_elements()), 0.25f);
  return MeasuredLaps(ProgramOf(transforms, type), DType::kFloat32, Way::kFloats,
                      {.floats = floats});
}

TEST(OperationTimesTest, AFusedPassCountsForItsDecodingAndItsResize) {
  EXPECT_THAT(JpegLaps("transforms { decode_jpeg {} } transforms { random_crop { height: 32 "
                       "width: 32 } } transforms { resize { height: 16 width: 16 } } "
                       "transforms { random_flip {} } transforms { normalize { scale: 2 } }",
                       Way::kJpeg),
              ElementsAre(Pair(0, Gt(3)), Pair(2, Gt(3))));
  // random_resized_crop crops and resizes in one operation.
  EXPECT_THAT(JpegLaps("transforms { decode_jpeg {} } "
                       "transforms { random_resized_crop { height: 16 width: 16 } } "
                       "transforms { round_to_uint8 {} } transforms { normalize { scale: 2 } }",
                       Way::kJpeg),
              ElementsAre(Pair(0, Gt(3)), Pair(1, Gt(3))));
}

TEST(OperationTimesTest, AFusedPassWithoutAResizeCountsForDecodingAndLastOperation) {
  const std::string cropped =
      "transforms { decode_jpeg {} } transforms { random_crop { height: 32 width: 32 } } ";
  EXPECT_THAT(JpegLaps(cropped + "transforms { normalize { scale: 2 } }", Way::kJpeg),
              ElementsAre(Pair(0, Gt(3)), Pair(2, Gt(3))));
  EXPECT_THAT(JpegLaps(cropped, Way::kJpeg), ElementsAre(Pair(0, Gt(3)), Pair(1, Gt(3))));
}

TEST(OperationTimesTest, AWindowCountsForDecodingAndLaterOperationsForThemselves) {
  EXPECT_THAT(
      JpegLaps("transforms { decode_jpeg {} } transforms { central_crop { fraction: 0.5 } } "
               "transforms { resize { height: 16 width: 16 method: BICUBIC } } "
               "transforms { normalize { scale: 2 } }",
               Way::kWindow),
      ElementsAre(Pair(0, Gt(0)), Pair(2, Gt(0))));
  EXPECT_THAT(JpegLaps("transforms { decode_jpeg {} } transforms { rot90 { k: 1 } } "
                       "transforms { resize { height: 16 width: 16 } }",
                       Way::kWindow),
              ElementsAre(Pair(0, Gt(0)), Pair(1, 1), Pair(2, 1)));
}

TEST(OperationTimesTest, DecodeImageAndTheResizeAfterItCountSeparatelyForJpegAndPng) {
  const std::string png = PngOf(std::string(size_t{64} * 48 * 3, 'a'), 64, 48, 3);
  for (const std::string& image : {Jpeg(64, 48), png}) {
    EXPECT_THAT(MeasuredLaps(ProgramOf("transforms { decode_image {} } "
                                       "transforms { resize { height: 16 width: 16 } }",
                                       {.element = ElementType::kBytes}),
                             DType::kFloat32, Way::kInterpreter, {.bytes = image}),
                ElementsAre(Pair(0, 1), Pair(1, 1)));
  }
}

TEST(OperationTimesTest, EachOperationThatRunsByRowIsMeasuredInEachPartOfTheImage) {
  // 4,096 floats (16 KiB) are changed at a time. The image has 12 times 4,096 floats.
  const std::vector<int64_t> shape = {64, 256, 3};
  EXPECT_THAT(
      FloatLaps("transforms { brightness { delta_max: 0.5 } } "
                "transforms { hue { delta_max: 0.5 } } transforms { gamma { gamma_max: 2 } }",
                shape),
      ElementsAre(Pair(0, Gt(12)), Pair(1, Gt(12)), Pair(2, Gt(12))));
  // rot90 runs alone, between operations that run by row, and has one lap.
  EXPECT_THAT(
      FloatLaps("transforms { brightness { delta_max: 0.5 } } transforms { rot90 { k: 1 } } "
                "transforms { gamma { gamma_max: 2 } }",
                shape),
      ElementsAre(Pair(0, Gt(12)), Pair(1, 1), Pair(2, Gt(12))));
}

TEST(OperationTimesTest, ANormalizeAtTheEndCountsByItself) {
  EXPECT_THAT(JpegLaps("transforms { decode_jpeg {} } transforms { rot90 { k: 1 } } "
                       "transforms { random_crop { height: 16 width: 16 } } "
                       "transforms { normalize { scale: 2 } }",
                       Way::kWindow),
              ElementsAre(Pair(0, Gt(0)), Pair(1, 1), Pair(2, 1), Pair(3, 1)));
}

TEST(OperationTimesTest, FloatsLabelsAndRawBytesCountOnceForTheLastOperation) {
  EXPECT_THAT(FloatLaps("transforms { normalize { scale: 2 } }", {12}), ElementsAre(Pair(0, 1)));
  const std::vector<int64_t> classes = {3};
  EXPECT_THAT(MeasuredLaps(ProgramOf("transforms { one_hot { depth: 10 } }",
                                     {.element = ElementType::kInt64, .shape = {1}}),
                           DType::kFloat32, Way::kInterpreter, {.int64s = classes}),
              ElementsAre(Pair(0, 1)));
  const std::string raw(12, 'a');
  const ValueType stored = {.element = ElementType::kBytes, .shape = {2, 2, 3}};
  EXPECT_THAT(MeasuredLaps(ProgramOf("transforms { decode_raw {} }", stored), DType::kFloat32,
                           Way::kValues, {.bytes = raw}),
              ElementsAre(Pair(0, 1)));
  EXPECT_THAT(MeasuredLaps(ProgramOf("transforms { decode_raw {} } "
                                     "transforms { resize { height: 64 width: 64 } }",
                                     stored),
                           DType::kFloat32, Way::kPixels, {.bytes = raw}),
              ElementsAre(Pair(1, 1)));
}

TEST(OperationTimesTest, AnOutputWithoutOperationsHasNoOperationTimes) {
  EXPECT_THAT(FloatLaps("", {12}), IsEmpty());
}

TEST(OperationTimesTest, TheRestOfAProgramKeepsTheOperationNumbersOfTheSpec) {
  const Program whole = ProgramOf(
      "transforms { decode_jpeg {} } transforms { resize { height: 16 width: 16 } } "
      "transforms { round_to_uint8 {} } transforms { random_crop { height: 8 width: 8 } } "
      "transforms { normalize { scale: 2 } } transforms { contrast { factor_max: 2 } }",
      {.element = ElementType::kBytes});
  const std::string pixels(size_t{16} * 16 * 3, 'a');
  const std::vector<int64_t> shape = {16, 16, 3};
  EXPECT_THAT(
      MeasuredLaps(whole.From(3), DType::kFloat32, Way::kPixels, {.bytes = pixels, .shape = shape}),
      ElementsAre(Pair(4, Gt(0)), Pair(5, Gt(0))));
  EXPECT_EQ(whole.From(1).From(2).number_of(1), 4);
}

}  // namespace
}  // namespace systole
