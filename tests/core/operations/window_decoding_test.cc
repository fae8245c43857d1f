// Tests programs in which only the record gives the image's size. Such programs decode only a
// window of the image. For random programs, lowered_program_test.cc compares the bytes with those
// of the references.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/image/paired_decoding.h"
#include "core/interrupt/interrupt.h"
#include "core/operations/program_runner.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/core/operations/plain_cast.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

constexpr ExampleKey kExample = {.seed = 3, .epoch = 1, .record = 5};

std::string WavyJpeg(int width, int height) {
  std::vector<uint8_t> pixels(static_cast<size_t>(width) * height * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * i >> 9);
  return *EncodeJpeg(pixels, width, height, 3, {});
}

// Runs a program that begins with decode_jpeg and ends with float32 values.
class Runner {
 public:
  explicit Runner(const std::string& transforms) {
    v1::Output output;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("transforms { decode_jpeg {} } ", transforms), &output));
    absl::StatusOr<Program> program =
        Program::Create(output.transforms(), {.element = ElementType::kBytes}, {});
    EXPECT_THAT(program, IsOk());
    lowered_ = Lower(std::make_shared<const Program>(*std::move(program)), DType::kFloat32, false);
    EXPECT_EQ(lowered_.way, LoweredProgram::Way::kWindow);
    runner_.emplace(*ProgramRunner::Create(lowered_, nullptr));
  }

  absl::StatusOr<ImageTransformer*> Begin(const std::string& jpeg) {
    return runner_->Begin(lowered_, jpeg, kExample);
  }
  absl::StatusOr<std::vector<uint8_t>> Run(const std::string& jpeg) {
    std::vector<uint8_t> out(static_cast<size_t>(lowered_.program->output().num_elements()) *
                             sizeof(float));
    std::vector<uint8_t> pixels;
    const absl::Status status =
        runner_->Run(lowered_, {.bytes = jpeg}, kExample, pixels, absl::MakeSpan(out));
    if (!status.ok()) return status;
    return out;
  }
  absl::StatusOr<std::vector<uint8_t>> Make(const std::string& jpeg) {
    const absl::Status status = Begin(jpeg).status();
    if (!status.ok()) return status;
    return Run(jpeg);
  }

  absl::StatusOr<std::vector<uint8_t>> Interpret(const std::string& jpeg) const {
    Value input;
    input.bytes = jpeg;
    const absl::StatusOr<Value> value = lowered_.program->Interpret(input, kExample);
    if (!value.ok()) return value.status();
    std::vector<uint8_t> out(value->floats.size() * sizeof(float));
    CastPlainly(*value, DType::kFloat32, absl::MakeSpan(out));
    return out;
  }

 private:
  LoweredProgram lowered_;
  std::optional<ProgramRunner> runner_;
};

constexpr char kSmooth[] =
    "transforms { center_crop { height: 20 width: 20 fraction: 0.5 antialias: true } } "
    "transforms { random_flip {} } transforms { normalize { mean: 9 stddev: 2 } } ";
constexpr char kCentre[] =
    "transforms { central_crop { fraction: 0.5 } } transforms { flip_left_right {} } "
    "transforms { brightness { delta_max: 3 } } transforms { resize { height: 9 width: 9 } } ";

constexpr char kSmoothThenBrighter[] =
    "transforms { random_resized_crop { height: 9 width: 40 method: LANCZOS3 } } "
    "transforms { flip_left_right {} } transforms { normalize { stddev: [1, 2, 3] } } "
    "transforms { brightness { delta_max: 3 } } ";

TEST(WindowDecodingTest, ImagesDecodedInPairsEqualTheReferenceInterpreter) {
  const std::string first = WavyJpeg(200, 150);
  const std::string second = WavyJpeg(90, 170);
  for (const std::string transforms : {kSmooth, kCentre, kSmoothThenBrighter}) {
    Runner a(transforms), b(transforms);
    const auto image_a = a.Begin(first);
    const auto image_b = b.Begin(second);
    ASSERT_THAT(image_a, IsOk());
    ASSERT_THAT(image_b, IsOk());
    PairedDecoding decoding;
    decoding.Add(0, **image_a);
    decoding.Add(1, **image_b);
    ASSERT_TRUE(decoding.waits(0) && decoding.waits(1));
    decoding.Advance();
    EXPECT_EQ(*a.Run(first), *a.Interpret(first));
    EXPECT_EQ(*b.Run(second), *b.Interpret(second));
    EXPECT_EQ(*b.Make(first), *a.Interpret(first));  // `b` makes a second example.
  }
}

TEST(WindowDecodingTest, DamageBelowTheWindowGoesUnnoticed) {
  const std::string whole = WavyJpeg(256, 256);
  const std::string cut = whole.substr(0, whole.size() * 9 / 10);
  const std::string half = whole.substr(0, whole.size() / 2);
  for (const std::string transforms : {kSmooth, kCentre}) {
    Runner runner(transforms);
    EXPECT_THAT(runner.Interpret(cut), StatusIs(absl::StatusCode::kDataLoss, testing::_));
    EXPECT_EQ(*runner.Make(cut), *runner.Interpret(whole));
    EXPECT_THAT(runner.Make(half), StatusIs(absl::StatusCode::kDataLoss, testing::_));
    EXPECT_EQ(*runner.Make(whole), *runner.Interpret(whole));
  }
}

TEST(WindowDecodingTest, TheSizeLimitAppliesToTheWindowNotTheWholeImage) {
  const std::string large = WavyJpeg(2600, 2600);
  const auto exhausted = StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("2600 x 2600"));
  for (const std::string transforms : {kSmooth, kCentre}) {
    Runner runner(transforms);
    EXPECT_THAT(runner.Make(large), IsOk());
    EXPECT_THAT(runner.Interpret(large), exhausted);
  }
  Runner whole("transforms { resize { height: 9 width: 9 method: BICUBIC } }");
  EXPECT_THAT(whole.Make(large), exhausted);
}

TEST(WindowDecodingTest, AnExampleThatIsNoLongerWantedIsCancelled) {
  const std::string jpeg = WavyJpeg(256, 256);
  Runner runner(kSmooth);
  ASSERT_THAT(runner.Begin(jpeg), IsOk());
  InterruptFlag unwanted;
  unwanted.Raise();
  const InterruptScope scope(unwanted);
  EXPECT_THAT(runner.Run(jpeg), StatusIs(absl::StatusCode::kCancelled, testing::_));
}

}  // namespace
}  // namespace systole
