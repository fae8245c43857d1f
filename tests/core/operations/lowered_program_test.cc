#include "core/operations/lowered_program.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/operations/kept_value.h"
#include "core/operations/ops/operation_table.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/core/operations/compared_programs.h"

namespace systole {
namespace {

using Way = LoweredProgram::Way;

LoweredProgram LowerText(const std::string& text) {
  v1::Output output;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &output)) << text;
  const std::vector<int64_t> shape(output.shape().begin(), output.shape().end());
  absl::StatusOr<Program> program =
      Program::Create(output.transforms(), {.element = ElementType::kBytes}, shape);
  EXPECT_TRUE(program.ok()) << program.status();
  return Lower(std::make_shared<const Program>(*std::move(program)),
               static_cast<DType>(output.dtype()), /*read_soon=*/false);
}

constexpr char kJpeg[] = "dtype: FLOAT32 transforms { decode_jpeg {} } ";
constexpr char kRaw[] = "dtype: FLOAT32 shape: [8, 9, 3] transforms { decode_raw {} } ";
constexpr char kCrop[] = "transforms { random_resized_crop { height: 4 width: 5 } } ";
constexpr char kResize[] = "transforms { resize { height: 4 width: 5 } } ";
constexpr char kFlip[] = "transforms { random_flip {} } ";
constexpr char kWindow[] = "transforms { random_crop { height: 3 width: 3 } } ";
constexpr char kRound[] = "transforms { round_to_uint8 {} } ";
constexpr char kNormalize[] = "transforms { normalize { mean: 3 stddev: 2 } } ";
constexpr char kBrightness[] = "transforms { brightness { delta_max: 1 } } ";

// Expects that the whole program is fused, and that LoweredProgram::way is `way`.
void ExpectFused(const std::string& text, Way way) {
  const LoweredProgram lowered = LowerText(text);
  EXPECT_EQ(lowered.way, way) << text;
  EXPECT_FALSE(lowered.has_rest()) << text;
}

TEST(LoweredProgramTest, SaysHowEachTransformRuns) {
  using testing::ElementsAre;
  const auto runs = [](const std::string& text) { return RunsOf(LowerText(text)); };
  const v1::TransformRun fused = v1::FUSED;
  EXPECT_THAT(runs(absl::StrCat(kJpeg, kCrop, kFlip, kNormalize)),
              ElementsAre(fused, fused, fused, fused));
  EXPECT_THAT(runs(absl::StrCat(kJpeg, kCrop, kBrightness, kNormalize)),
              ElementsAre(fused, fused, v1::BY_ROW, v1::BY_ROW));
  EXPECT_THAT(
      runs(absl::StrCat(kJpeg, "transforms { resize { height: 4 width: 5 method: LANCZOS3 } }",
                        kNormalize, "transforms { rot90 { k: 1 } }")),
      ElementsAre(fused, fused, fused, v1::ALONE));
  // The decoder decodes only kWindow's rectangle. The resize by AREA then runs alone.
  EXPECT_THAT(runs(absl::StrCat(kJpeg, kWindow,
                                "transforms { resize { height: 4 width: 5 method: "
                                "AREA } }")),
              ElementsAre(fused, fused, v1::ALONE));
  EXPECT_THAT(runs("dtype: FLOAT32 transforms { decode_png {} } transforms { resize { height: 4 "
                   "width: 5 } } transforms { normalize { mean: 1 } }"),
              ElementsAre(v1::ALONE, v1::ALONE, v1::BY_ROW));
  EXPECT_THAT(runs("dtype: UINT8"), ElementsAre());
}

TEST(LoweredProgramTest, CommonProgramsAreFusedIntoOnePass) {
  for (const std::string end : {"", kNormalize}) {
    for (const std::string flip : {"", kFlip}) {
      for (const std::string size : {kCrop, kResize, kWindow}) {
        ExpectFused(kJpeg + size + flip + end, Way::kJpeg);
        ExpectFused(kRaw + size + flip + end, Way::kPixels);
        ExpectFused(kJpeg + size + end + flip, Way::kJpeg);
        ExpectFused(kJpeg + size + flip + kRound + end, Way::kJpeg);
      }
    }
    ExpectFused(kRaw + end, Way::kValues);
  }
}

TEST(LoweredProgramTest, SeveralCropsAndFlipsAreFusedIntoOnePass) {
  ExpectFused(std::string(kJpeg) + kWindow + kWindow + kResize, Way::kJpeg);
  ExpectFused(std::string(kJpeg) + kWindow + kFlip + kFlip + kNormalize + kFlip, Way::kJpeg);
  ExpectFused(std::string(kRaw) + kFlip + kWindow + kNormalize, Way::kPixels);
  ExpectFused(std::string(kRaw) + kNormalize + kWindow, Way::kPixels);
}

TEST(LoweredProgramTest, StepsThatCannotBeFusedAreLeftToTheReferences) {
  const auto rest = [](const std::string& text) {
    const LoweredProgram lowered = LowerText(text);
    EXPECT_NE(lowered.way, Way::kInterpreter) << text;
    return lowered.program->steps().size() - lowered.rest;
  };
  EXPECT_EQ(rest(std::string(kJpeg) + kCrop + kBrightness), 1);
  EXPECT_EQ(rest(std::string(kJpeg) + kCrop + kBrightness + kFlip + kNormalize), 3);
  // The resizer of kCrop makes whole images. So kWindow is not fused.
  EXPECT_EQ(rest(std::string(kJpeg) + kCrop + kWindow), 1);
  // A resizer takes only decoded or stored pixels, and not the pixels that kCrop has resized.
  EXPECT_EQ(rest(std::string(kJpeg) + kCrop + kResize), 1);
  // Resizing and then mirroring rounds differently from mirroring and then resizing.
  EXPECT_EQ(rest(std::string(kRaw) + kFlip + kResize), 1);
  EXPECT_EQ(rest(std::string(kRaw) + kNormalize + kRound), 1);
  EXPECT_EQ(rest(std::string(kRaw) + kNormalize + kNormalize), 1);
}

// Expects Way::kWindow: the fused pass decodes only a window of the image. `moves` is the size of
// LoweredProgram::moves. The last `rest` steps must be left to the references.
void ExpectWindow(const std::string& text, size_t moves, bool resamples, size_t rest) {
  const LoweredProgram lowered = LowerText(text);
  EXPECT_EQ(lowered.way, Way::kWindow) << text;
  EXPECT_EQ(lowered.moves.size(), moves) << text;
  EXPECT_EQ(lowered.resample.has_value(), resamples) << text;
  EXPECT_EQ(lowered.program->steps().size() - lowered.rest, rest) << text;
  EXPECT_EQ(lowered.rest_bytes, 2 * kMaxValueBytes) << text;
}

TEST(LoweredProgramTest, OnlyAWindowIsDecodedOfImagesOfVaryingSize) {
  const std::string central = "transforms { central_crop { fraction: 0.5 } } ";
  ExpectWindow(std::string(kJpeg) + kFlip + kResize, 1, false, 1);
  ExpectWindow(std::string(kJpeg) + kBrightness + kResize, 0, false, 2);
  ExpectWindow(kJpeg + central + kFlip + kRound + kBrightness + kResize, 2, false, 2);
  // A window has uint8 pixels, so the normalize and the steps after it are not fused.
  ExpectWindow(kJpeg + central + kNormalize + kFlip + kResize, 1, false, 3);
}

TEST(LoweredProgramTest, EveryResizeMethodResamplesOnlyTheDecodedWindow) {
  const std::string central = "transforms { central_crop { fraction: 0.5 } } ";
  for (const std::string method : {"antialias: true", "method: BICUBIC", "method: NEAREST",
                                   "method: AREA", "sampling: TF1", "method: LANCZOS3"}) {
    const std::string size = "height: 4 width: 4 " + method + " } } ";
    ExpectWindow(kJpeg + ("transforms { resize { " + size), 1, true, 0);
    const bool gives_rows = method != "method: NEAREST" && method != "method: AREA";
    ExpectWindow(kJpeg + ("transforms { center_crop { " + size) + kFlip + kNormalize + kFlip, 1,
                 true, gives_rows ? 0 : 3);
    ExpectWindow(kJpeg + central + kFlip + ("transforms { random_resized_crop { " + size), 3, true,
                 0);
  }
  // A crop of fixed size may be larger than kMaxValueBytes, so it is not made by Way::kWindow.
  EXPECT_EQ(LowerText(std::string(kJpeg) + kWindow +
                      "transforms { resize { height: 4 width: 4 method: AREA } }")
                .way,
            Way::kJpeg);
}

TEST(LoweredProgramTest, ScaleAutoAppliesOnlyToAPlainResizeAfterCropsAlone) {
  const std::string auto_scale = "dtype: FLOAT32 transforms { decode_jpeg { scale: AUTO } } ";
  const std::string central = "transforms { central_crop { fraction: 0.5 } } ";
  const std::string center = "transforms { center_crop { height: 4 width: 5 } } ";
  const auto is_scaled = [](const std::string& text) { return LowerText(text).image.scaled; };
  for (const std::string resize : {kCrop, kResize, center.c_str()}) {
    EXPECT_TRUE(is_scaled(auto_scale + resize)) << resize;
    EXPECT_TRUE(is_scaled(auto_scale + kWindow + central + kWindow + resize + kFlip + kNormalize));
    EXPECT_TRUE(is_scaled(auto_scale + resize + kResize));
    EXPECT_FALSE(is_scaled(kJpeg + resize));
    EXPECT_FALSE(is_scaled(auto_scale + kRound + resize));
    EXPECT_FALSE(is_scaled(auto_scale + kWindow + kFlip + resize));
    EXPECT_FALSE(is_scaled(auto_scale + kBrightness + resize));
  }
  EXPECT_FALSE(is_scaled(auto_scale + kWindow));
  const std::string size = "transforms { resize { height: 4 width: 5 ";
  EXPECT_FALSE(is_scaled(auto_scale + size + "antialias: true } }"));
  EXPECT_FALSE(is_scaled(auto_scale + size + "method: AREA } }"));
}

TEST(LoweredProgramTest, ScratchCountsWhatTheReferencesHold) {
  EXPECT_EQ(LowerText(std::string(kJpeg) + kCrop + kNormalize).rest_bytes, 0);
  EXPECT_EQ(LowerText(std::string(kJpeg) + kCrop + kRound + kNormalize).rounded_bytes, 4 * 5 * 3);
  EXPECT_EQ(LowerText(std::string(kJpeg) + kCrop + kBrightness).rest_bytes, 2 * 4 * 5 * 3 * 4);
  // The whole resized image must be in memory, although the next step keeps only a window of it.
  EXPECT_EQ(
      LowerText(std::string(kJpeg) + "transforms { resize { height: 1000 width: 1000 } }" + kWindow)
          .rest_bytes,
      2 * 1000 * 1000 * 3 * 4);
}

TEST(LoweredProgramTest, CountsTheElementsThatReferencesMake) {
  EXPECT_EQ(LowerText(std::string(kJpeg) + kCrop + kFlip).interpreted_elements, 0);
  EXPECT_EQ(LowerText(std::string(kJpeg) + kCrop + kBrightness + kFlip).interpreted_elements,
            2 * 4 * 5 * 3);
  EXPECT_EQ(LowerText(std::string(kJpeg) + kFlip + kResize).interpreted_elements, 4 * 5 * 3);
  // The size of the brightened image is unknown, so it counts as kMaxValueBytes elements of uint8.
  EXPECT_EQ(LowerText(std::string(kJpeg) + kBrightness + kResize).interpreted_elements,
            kMaxValueBytes + 4 * 5 * 3);
}

TEST(LoweredProgramTest, ANormalizeAtTheEndIsDoneWithTheCast) {
  const LoweredProgram pixels =
      LowerText(absl::StrCat("dtype: FLOAT32 transforms { decode_png {} }", kWindow, kNormalize));
  EXPECT_EQ(pixels.rest, 0);
  EXPECT_EQ(pixels.rest_end(), 2);
  // After kCrop the brightness, the normalize and the cast are done together, row by row.
  const LoweredProgram floats = LowerText(std::string(kJpeg) + kCrop + kBrightness + kNormalize);
  EXPECT_EQ(floats.rest, 2);
  EXPECT_EQ(floats.rest_end(), 4);
}

TEST(LoweredProgramTest, ThreeThousandRandomProgramsMatchTheReferences) {
  std::vector<int> ways(6);
  int with_rest = 0;
  int with_cache = 0;
  int scaled = 0;
  std::set<std::string> drawn_operations;
  for (int64_t round = 0; round < 3000; ++round) {
    CounterRng rng(20, 0, round, 1);
    std::vector<uint8_t> bytes(96);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.NextU32());
    const RandomProgram drawn = DrawProgram(bytes);
    const std::shared_ptr<const Program> program = CompileDrawn(drawn);
    if (program == nullptr) continue;
    const std::string difference = CompareLowered(drawn, program);
    ASSERT_EQ(difference, "") << "round " << round << ": " << drawn.output.DebugString();
    const LoweredProgram lowered = Lower(program, static_cast<DType>(drawn.output.dtype()), false);
    ++ways[static_cast<size_t>(lowered.way)];
    with_rest += lowered.has_rest() ? 1 : 0;
    with_cache +=
        KeptValuesOf(drawn.output, *program, lowered.dtype, {.height = 9, .width = 9}).ok() ? 1 : 0;
    scaled += lowered.image.scaled ? 1 : 0;
    for (const Program::Step& step : program->steps()) drawn_operations.insert(step.name);
  }
  for (const OperationRow& row : Operations()) {
    EXPECT_EQ(drawn_operations.count(OperationName(row.kind)), 1) << OperationName(row.kind);
  }
  for (const Way way :
       {Way::kJpeg, Way::kPixels, Way::kValues, Way::kFloats, Way::kWindow, Way::kInterpreter}) {
    EXPECT_GT(ways[static_cast<size_t>(way)], 30) << static_cast<int>(way);
  }
  EXPECT_GT(with_rest, 300);
  EXPECT_GT(with_cache, 100);
  EXPECT_GT(scaled, 20);
}

}  // namespace
}  // namespace systole
