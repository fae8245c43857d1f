#include "core/operations/kept_value.h"

#include <algorithm>
#include <cstdint>
#include <random>
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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Makes an output. `shape` is "shape: .." or "". Each of `transforms` is the content of one
// `transforms { .. }`.
v1::Output OutputOf(const std::string& shape, const std::vector<std::string>& transforms) {
  std::string text = shape;
  for (const std::string& transform : transforms) {
    absl::StrAppend(&text, " transforms { ", transform, " }");
  }
  v1::Output output;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &output)) << text;
  return output;
}

absl::StatusOr<KeptValues> KeptOf(const v1::Output& output, DType dtype = DType::kFloat32,
                                  ElementType element = ElementType::kBytes) {
  const std::vector<int64_t> shape(output.shape().begin(), output.shape().end());
  ValueType input = {.element = element};
  if (element != ElementType::kBytes) input.shape = shape;
  const absl::StatusOr<Program> program = Program::Create(output.transforms(), input, shape);
  EXPECT_THAT(program, IsOk()) << output.ShortDebugString();
  return KeptValuesOf(output, *program, dtype, {.height = 100, .width = 120});
}

// Returns the names of the values that the cache could keep of a record. The name of the finished
// example is "finished". Any other name is the number of steps that make the value.
std::vector<std::string> ValuesOf(const std::vector<std::string>& transforms,
                                  DType dtype = DType::kFloat32, const std::string& shape = "") {
  const absl::StatusOr<KeptValues> kept = KeptOf(OutputOf(shape, transforms), dtype);
  EXPECT_THAT(kept, IsOk());
  std::vector<std::string> names;
  if (!kept.ok()) return names;
  for (const KeptValue& value : kept->values) {
    names.push_back(value.finished ? "finished" : absl::StrCat(value.steps));
  }
  return names;
}

std::vector<KeptCost> CostsOf(const KeptValues& kept) {
  std::vector<KeptCost> costs;
  for (const KeptValue& value : kept.values) costs.push_back(value.cost);
  return costs;
}

// Returns the name of the best value to keep if the cache has room for `bytes` bytes of each
// record.
std::string BestOf(const std::vector<std::string>& transforms, double bytes,
                   DType dtype = DType::kFloat32) {
  const absl::StatusOr<KeptValues> kept = KeptOf(OutputOf("", transforms), dtype);
  EXPECT_THAT(kept, IsOk());
  if (!kept.ok()) return "";
  const size_t best = BestKept(CostsOf(*kept), kept->work, [bytes](int64_t of_value) {
    return std::min(1.0, bytes / static_cast<double>(of_value));
  });
  return ValuesOf(transforms, dtype)[best];
}

constexpr char kJpeg[] = "decode_jpeg {}";
constexpr char kResize[] = "resize { height: 80 width: 80 }";
constexpr char kRound[] = "round_to_uint8 {}";
constexpr char kNormalize[] = "normalize { mean: 3 }";
constexpr char kBrightness[] = "brightness { delta_min: -0.1 delta_max: 0.1 }";
constexpr char kRandomCrop[] = "random_crop { height: 40 width: 40 }";
constexpr double kAll = 1e9;  // Bytes for each record: enough for any value.

TEST(KeptValueTest, IsMadeBeforeTheFirstRandomStep) {
  EXPECT_THAT(ValuesOf({kJpeg, "random_resized_crop { height: 8 width: 8 }"}), ElementsAre("1"));
  EXPECT_THAT(ValuesOf({kJpeg, "random_flip {}", kResize, kRound}), ElementsAre("1"));
  EXPECT_THAT(ValuesOf({kJpeg, kRandomCrop, kNormalize}), ElementsAre("1"));
}

TEST(KeptValueTest, IsAFinishedExampleIfNoStepDraws) {
  EXPECT_EQ(BestOf({kJpeg, kResize, kNormalize}, kAll), "finished");
  EXPECT_EQ(BestOf({kJpeg, kResize}, kAll), "finished");
  EXPECT_EQ(BestOf({kJpeg, kResize, kNormalize}, kAll, DType::kBfloat16), "finished");
  EXPECT_EQ(BestOf({kJpeg, kResize}, kAll, DType::kUint8), "finished");
  EXPECT_EQ(BestOf({"decode_png {}", "crop { height: 4 width: 4 }"}, kAll, DType::kUint8),
            "finished");
}

TEST(KeptValueTest, IsASmallValueIfTheCacheHasNoRoomForALargeValue) {
  // The decoded image has 36 kB. The finished image has 77 kB, because its values are floats.
  const std::vector<std::string> transforms = {kJpeg, kResize, kNormalize};
  EXPECT_EQ(BestOf(transforms, 77e3), "finished");
  EXPECT_EQ(BestOf(transforms, 36e3), "1");
  EXPECT_EQ(BestOf(transforms, 1e3), "1");
  EXPECT_EQ(BestOf(transforms, 0), "1");
}

TEST(KeptValueTest, IsTheRoundedImageBeforeALastScaleAndBias) {
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16}) {
    EXPECT_THAT(ValuesOf({kJpeg, kResize, kRound, kNormalize}, dtype), ElementsAre("3"));
    EXPECT_THAT(ValuesOf({kJpeg, kResize, kRound}, dtype), ElementsAre("3"));
  }
}

TEST(KeptValueTest, MayBeAnImageOfFloats) {
  const std::vector<std::string> transforms = {
      kJpeg, "resize { height: 80 width: 80 antialias: true }", kRandomCrop, kNormalize};
  EXPECT_EQ(BestOf(transforms, kAll), "2");
  EXPECT_EQ(BestOf(transforms, 3e3), "1");
}

TEST(KeptValueTest, ADecodedImageSavesTheWorkOfTheDecodeWhateverTheResize) {
  constexpr int kBytes = 100 * 120 * 3;

  for (const std::string options : {"", "antialias: true", "method: BICUBIC", "method: AREA"}) {
    const std::string resize = absl::StrCat("resize { height: 80 width: 80 ", options, " }");
    const absl::StatusOr<KeptValues> kept =
        KeptOf(OutputOf("", {kJpeg, resize, kRandomCrop, kNormalize}));
    ASSERT_THAT(kept, IsOk());
    const KeptValue& image = kept->values.front();
    EXPECT_EQ(image.steps, 1u);
    // The kept image is copied, which takes 1/16 a byte.
    EXPECT_EQ(kept->work - image.cost.work, kBytes * (4 - 1.0 / 16)) << resize;
  }
}

TEST(KeptValueTest, LargerValuesAreOfferedOnlyIfTheySaveWork) {
  // The value before the crop is not offered: it takes more room than the cropped value, and leaves
  // more work.
  EXPECT_THAT(ValuesOf({kJpeg, kResize, kRound, "crop { height: 60 width: 60 }", kRandomCrop}),
              ElementsAre("4"));
  // The padded image takes more room than the image before the padding, but saves work. So both are
  // offered.
  const std::string pad = "pad { offset_height: 4 offset_width: 4 height: 160 width: 160 }";
  EXPECT_EQ(BestOf({kJpeg, kResize, kRound, pad, kRandomCrop}, 19'200), "3");
  EXPECT_EQ(BestOf({kJpeg, kResize, kRound, pad, kRandomCrop}, kAll), "4");
  EXPECT_THAT(ValuesOf({kJpeg, "grayscale {}", kRandomCrop}), ElementsAre("2"));
}

TEST(KeptValueTest, CachingBytesThatAreOnlyCopiedIsRefused) {
  const std::string shape = "shape: [80, 80, 3]";
  EXPECT_THAT(ValuesOf({"decode_raw {}", "grayscale {}", kRandomCrop}, DType::kFloat32, shape),
              ElementsAre("2"));
  EXPECT_THAT(ValuesOf({"decode_raw {}", "grayscale {}"}, DType::kUint8, shape),
              ElementsAre("finished"));
  const std::vector<std::vector<std::string>> programs = {
      {"decode_raw {}"},
      {"decode_raw {}", kRandomCrop},
      {"decode_raw {}", kNormalize},
      {"decode_raw {}", kNormalize, kRandomCrop},
      {"decode_raw { stored: FLOAT32 }", "random_flip {}"}};
  for (const std::vector<std::string>& transforms : programs) {
    EXPECT_THAT(KeptOf(OutputOf(shape, transforms)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("has nothing to keep"), HasSubstr("leave cache out"))));
  }
}

TEST(KeptValueTest, CachingAFeatureOfNumbersIsRefused) {
  EXPECT_THAT(
      KeptOf(OutputOf("shape: [80, 80, 3]", {kRandomCrop}), DType::kFloat32, ElementType::kFloat32),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the feature holds numbers")));
}

TEST(KeptValueTest, NoValueIsKeptBetweenAScaledDecodeAndItsResize) {
  const std::string scaled = "decode_jpeg { scale: AUTO }";
  EXPECT_THAT(ValuesOf({scaled, kResize, kRound, kRandomCrop}), ElementsAre("3"));
  EXPECT_THAT(ValuesOf({scaled, kResize, "random_flip {}"}), ElementsAre("2"));
  EXPECT_THAT(ValuesOf({scaled, kResize}), ElementsAre("finished"));
  EXPECT_THAT(KeptOf(OutputOf("", {scaled, "random_resized_crop { height: 8 width: 8 }", kRound})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("use scale: FULL")));
  // With a random_flip between decode_jpeg and the resize, AUTO means FULL.
  EXPECT_THAT(ValuesOf({scaled, "random_flip {}", kResize}), ElementsAre("1"));
}

std::string MadeBy(const std::vector<std::string>& transforms, DType dtype = DType::kFloat32,
                   const std::string& shape = "") {
  return KeptOf(OutputOf(shape, transforms), dtype)->values.back().made_by;
}

TEST(KeptValueTest, MadeByTextsAreEqualOnlyForEqualStepsAndShapes) {
  const std::string jpeg = MadeBy({kJpeg, kRandomCrop});
  EXPECT_EQ(MadeBy({"decode_jpeg { channels: 3 }", kRandomCrop}), jpeg);
  EXPECT_EQ(MadeBy({kJpeg, "random_flip {}", kRandomCrop}), jpeg);
  EXPECT_EQ(MadeBy({kJpeg, kRandomCrop}, DType::kUint8), jpeg);
  EXPECT_NE(MadeBy({"decode_jpeg { channels: 1 }", kRandomCrop}), jpeg);
  EXPECT_NE(MadeBy({kJpeg, "central_crop { fraction: 0.5 }", kRandomCrop}), jpeg);
  const auto grey = [](const std::string& shape) {
    return MadeBy({"decode_raw {}", "grayscale {}", "random_flip {}"}, DType::kUint8, shape);
  };
  EXPECT_NE(grey("shape: [8, 8, 3]"), grey("shape: [4, 16, 3]"));
}

TEST(KeptValueTest, MadeByTextsOfFinishedExamplesDifferByDtype) {
  std::vector<std::string> texts = {MadeBy({kJpeg, kResize, kBrightness})};
  for (const DType dtype : {DType::kUint8, DType::kFloat32, DType::kBfloat16, DType::kFloat16}) {
    texts.push_back(MadeBy({kJpeg, kResize}, dtype));
  }
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(std::unique(texts.begin(), texts.end()), texts.end());
  // The first feed keeps its finished uint8 values. The second feed keeps the same uint8 values,
  // which it has before its random crop. The feeds may share these values, so the texts are equal.
  EXPECT_EQ(MadeBy({kJpeg, kResize, kRound}, DType::kUint8),
            MadeBy({kJpeg, kResize, kRound, kRandomCrop}));
}

// Random costs. As in KeptValues, each further value has more bytes and leaves less work.
struct RandomCosts {
  explicit RandomCosts(uint32_t seed) {
    std::mt19937 random(seed);
    int64_t bytes = 0;
    work = 1000 + random() % 1000;
    double left = work;
    for (uint32_t i = 0, count = 1 + random() % 6; i < count; ++i) {
      bytes += 1 + random() % 1000;
      left *= static_cast<double>(random() % 1000) / 1000;
      values.push_back({.bytes = bytes, .work = left});
    }
  }
  double TimeOf(size_t i, double budget) const {
    const double share = std::min(1.0, budget / static_cast<double>(values[i].bytes));
    return share * values[i].work + (1 - share) * work;
  }
  size_t Best(double budget) const {
    return BestKept(values, work, [budget](int64_t bytes) {
      return std::min(1.0, budget / static_cast<double>(bytes));
    });
  }

  std::vector<KeptCost> values;
  double work = 0;
};

TEST(BestKeptTest, NoOtherValueIsFasterByATenth) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    const RandomCosts costs(seed);
    for (const double budget : {0.0, 1.0, 100.0, 1000.0, 3000.0, 10'000.0}) {
      const size_t best = costs.Best(budget);
      for (size_t i = 0; i < costs.values.size(); ++i) {
        EXPECT_LE(costs.TimeOf(best, budget), 1.1001 * costs.TimeOf(i, budget) + 1e-9)
            << seed << " " << budget;
      }
    }
  }
}

TEST(BestKeptTest, EverySmallerValueIsATenthSlowerThanTheFastest) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    const RandomCosts costs(seed);
    const double budget = 3 * (seed % 1000);
    const size_t best = costs.Best(budget);
    double least = costs.work;
    for (size_t i = 0; i < costs.values.size(); ++i) {
      least = std::min(least, costs.TimeOf(i, budget));
    }
    for (size_t i = 0; i < best; ++i) EXPECT_GT(costs.TimeOf(i, budget), 1.0999 * least) << seed;
  }
}

TEST(BestKeptTest, MoreRoomNeverMakesAnEpochSlowerByMoreThanATenth) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    const RandomCosts costs(seed);
    double before = costs.work;
    for (double budget = 0; budget < 6000; budget += 37) {
      const double time = costs.TimeOf(costs.Best(budget), budget);
      EXPECT_LE(time, 1.1001 * before + 1e-9) << seed << " " << budget;
      before = std::min(before, time);
    }
  }
}

TEST(BestKeptTest, WithoutRoomTheSmallestValueIsBest) {
  for (uint32_t seed = 0; seed < 100; ++seed) EXPECT_EQ(RandomCosts(seed).Best(0), 0u);
}

TEST(KeptValueTest, ValuesOfMoreBytesLeaveLessWork) {
  for (const std::string resize :
       {kResize, "resize { height: 200 width: 200 method: BICUBIC }", "grayscale {}"}) {
    const absl::StatusOr<KeptValues> kept =
        KeptOf(OutputOf("", {kJpeg, resize, "flip_left_right {}", kBrightness, kRandomCrop}));
    ASSERT_THAT(kept, IsOk());
    EXPECT_THAT(kept->values, Not(IsEmpty()));
    for (size_t i = 0; i + 1 < kept->values.size(); ++i) {
      EXPECT_LT(kept->values[i].cost.bytes, kept->values[i + 1].cost.bytes);
      EXPECT_GT(kept->values[i].cost.work, kept->values[i + 1].cost.work);
    }
  }
}

}  // namespace
}  // namespace systole
