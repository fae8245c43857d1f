// Compares geometric operations and decoding with TensorFlow. tests/golden/tensorflow has
// TensorFlow's results (geometry.tfrecord, decode.tfrecord), and the scripts that made them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/example/example_parser.h"
#include "core/image/window/distorted_box.h"
#include "core/operations/program.h"
#include "core/random/philox.h"
#include "core/record/tfrecord/record_reader.h"
#include "core/status/check.h"
#include "core/storage/local/file_source.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/core/operations/compared_programs.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

// A record whose features can be read by name.
class Golden {
 public:
  explicit Golden(absl::string_view record) : record_(record) {
    const absl::StatusOr<ExampleView> view = ExampleView::Parse(record_);
    SYSTOLE_CHECK(view.ok());
    for (const FeatureView& feature : view->Features()) names_.emplace_back(feature.name());
  }

  bool Has(absl::string_view name) const {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }
  std::string Bytes(absl::string_view name) const {
    return std::string(*ExampleView::Parse(record_)->Find(name).BytesAt(0));
  }
  std::vector<int64_t> Int64s(absl::string_view name) const {
    const FeatureView feature = ExampleView::Parse(record_)->Find(name);
    std::vector<int64_t> values(static_cast<size_t>(feature.count()));
    SYSTOLE_CHECK(feature.CopyInt64s(absl::MakeSpan(values)).ok());
    return values;
  }
  std::vector<float> Floats(absl::string_view name) const {
    const FeatureView feature = ExampleView::Parse(record_)->Find(name);
    std::vector<float> values(static_cast<size_t>(feature.count()));
    SYSTOLE_CHECK(feature.CopyFloats(absl::MakeSpan(values)).ok());
    return values;
  }

 private:
  std::string record_;
  std::vector<std::string> names_;
};

// Reads the records of `file` that have a feature `name`.
std::vector<Golden> ReadGoldens(absl::string_view name, absl::string_view file = "geometry") {
  const auto source = FileSource::Open(absl::StrCat("tests/golden/tensorflow/", file, ".tfrecord"));
  EXPECT_THAT(source, IsOk());
  absl::StatusOr<RecordReader> reader = RecordReader::Create(**source);
  EXPECT_THAT(reader, IsOk());
  std::vector<Golden> goldens;
  while (true) {
    const auto record = reader->Next();
    EXPECT_THAT(record, IsOk());
    if (!record.ok() || !record->has_value()) return goldens;
    Golden golden(**record);
    if (golden.Has(name)) goldens.push_back(std::move(golden));
  }
}

// The largest allowed difference from TensorFlow in a case, relative to the case's largest value.
// 0 means that all bits must be equal. Where TensorFlow calls libm for sines or exponentials, the
// bound is larger, because the last bits of libm's results depend on the CPU. If each sine is off
// by one unit in its last place, a weight changes by 2^-22 of its value. The values of the golden
// cases then change by less than 1e-6; 2.4e-7 was measured. parity_test checks the bound that holds
// for all images.
double BoundOf(const std::string& output) {
  for (const char* const method : {"LANCZOS3", "LANCZOS5", "GAUSSIAN"}) {
    if (absl::StrContains(output, method)) return 1e-6;
  }
  return 0;
}

// The largest distance of a value in `got` from its value in `want`, divided by the largest
// absolute value in `want`.
double DistanceOf(const std::vector<float>& got, const std::vector<float>& want) {
  double most = 0;
  double largest = 1e-30;
  for (size_t i = 0; i < want.size(); ++i) {
    most = std::max(most, std::fabs(double{got[i]} - double{want[i]}));
    largest = std::max(largest, std::fabs(double{want[i]}));
  }
  return most / largest;
}

TEST(OperationsGoldenTest, GoldenFilesNameTheTensorFlowVersionThatMadeThem) {
  for (const char* const file : {"geometry", "decode"}) {
    const std::vector<Golden> versions = ReadGoldens("tensorflow", file);
    ASSERT_EQ(versions.size(), 1);
    EXPECT_EQ(versions[0].Bytes("tensorflow"), "2.21.0");
  }
}

void ExpectTensorFlows(const std::vector<Golden>& goldens) {
  for (const Golden& golden : goldens) {
    const std::string text = golden.Bytes("output");
    RandomProgram drawn;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &drawn.output)) << text;
    if (golden.Has("stored")) drawn.stored = golden.Bytes("stored");
    if (golden.Has("floats")) drawn.floats = golden.Floats("floats");
    const std::shared_ptr<const Program> program = CompileDrawn(drawn);
    ASSERT_NE(program, nullptr) << text;
    Value input;
    input.type = program->input();
    input.bytes = drawn.stored;
    input.floats = drawn.floats;
    const absl::StatusOr<Value> value = program->Interpret(input, {});
    ASSERT_THAT(value, IsOk()) << text;
    ASSERT_EQ(value->type.shape, golden.Int64s("want_shape")) << text;
    if (golden.Has("want_uint8")) {
      const std::string want = golden.Bytes("want_uint8");
      EXPECT_EQ(std::string(value->uint8s.begin(), value->uint8s.end()), want) << text;
    } else {
      const std::vector<float> want = golden.Floats("want_floats");
      ASSERT_EQ(value->floats.size(), want.size()) << text;
      const double bound = BoundOf(text);
      const double distance = DistanceOf(value->floats, want);
      EXPECT_LE(distance, bound) << text;
      if (bound == 0) {
        EXPECT_EQ(std::memcmp(value->floats.data(), want.data(), want.size() * sizeof(float)), 0)
            << text;
      }
    }
    EXPECT_EQ(CompareLowered(drawn, program), "") << text;
  }
}

TEST(OperationsGoldenTest, EveryGeometryCaseMatchesTensorFlow) {
  const std::vector<Golden> goldens = ReadGoldens("output");
  ASSERT_GT(goldens.size(), 250);
  ExpectTensorFlows(goldens);
}

TEST(OperationsGoldenTest, EveryDecodedFileMatchesTensorFlow) {
  const std::vector<Golden> goldens = ReadGoldens("output", "decode");
  ASSERT_GT(goldens.size(), 300);
  ExpectTensorFlows(goldens);
}

TEST(OperationsGoldenTest, DecodeAndCropDiffersOnlyInOutermostColumnsAndNarrowCrops) {
  int different = 0;
  const std::vector<Golden> goldens = ReadGoldens("decode_and_crop", "decode");
  ASSERT_EQ(goldens.size(), 50);
  for (const Golden& golden : goldens) {
    const std::string text = golden.Bytes("decode_and_crop");
    RandomProgram drawn;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &drawn.output)) << text;
    const std::shared_ptr<const Program> program = CompileDrawn(drawn);
    ASSERT_NE(program, nullptr) << text;
    const std::string stored = golden.Bytes("stored");
    Value input;
    input.type = program->input();
    input.bytes = stored;
    const absl::StatusOr<Value> value = program->Interpret(input, {});
    ASSERT_THAT(value, IsOk()) << text;
    const std::string want = golden.Bytes("want_uint8");
    ASSERT_EQ(value->uint8s.size(), want.size()) << text;
    const auto width = static_cast<size_t>(value->width());
    for (size_t i = 0; i < want.size(); ++i) {
      if (value->uint8s[i] == static_cast<uint8_t>(want[i])) continue;
      const size_t column = i / 3 % width;
      // TensorFlow crops with libjpeg. In a crop of at most 4 columns libjpeg does not interpolate
      // the colours, so any column may differ.
      EXPECT_TRUE(column == 0 || column + 1 == width || width <= 4)
          << text << " in column " << column;
      ++different;
    }
  }
  EXPECT_GT(different, 0);
}

TEST(OperationsGoldenTest, PaddedCentreCropsAreThoseOfTheTpuResNet) {
  const std::vector<Golden> goldens = ReadGoldens("padded_centres");
  ASSERT_EQ(goldens.size(), 1);
  const std::vector<int64_t> rows = goldens[0].Int64s("padded_centres");
  ASSERT_EQ(rows.size(), 300 * 6);
  for (size_t i = 0; i < rows.size(); i += 6) {
    const CropRect crop = PaddedCentreCrop(static_cast<int>(rows[i]), static_cast<int>(rows[i + 1]),
                                           static_cast<int>(rows[i + 2]));
    EXPECT_EQ(crop, (CropRect{static_cast<int>(rows[i + 3]), static_cast<int>(rows[i + 4]),
                              static_cast<int>(rows[i + 5]), static_cast<int>(rows[i + 5])}))
        << rows[i] << " of " << rows[i + 1] << " x " << rows[i + 2];
  }
}

// Makes the draws that TensorFlow's stateless operations make with a seed. With these draws, our
// boxes can be compared with TensorFlow's.
class TensorFlowDraws final : public BoxDraws {
 public:
  TensorFlowDraws(int64_t seed0, int64_t seed1) {
    const auto low = static_cast<uint64_t>(seed0);
    const auto high = static_cast<uint64_t>(seed1);
    const PhiloxBlock mix = Philox4x32({LowWord(low), HighWord(low), LowWord(high), HighWord(high)},
                                       {0x3ec8f720, 0x02461e29});
    key_ = {mix[0], mix[1]};
    counter_ = {0, 0, mix[2], mix[3]};
  }

  float Unit() override {
    const uint32_t bits = (Next() & 0x7fffffu) | uint32_t{127} << 23;
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return value - 1.0f;
  }

  int Below(int limit) override {
    const auto n = static_cast<uint32_t>(limit);
    if ((n & (n - 1)) == 0) return static_cast<int>(Next() & (n - 1));
    const uint32_t refused = ~uint32_t{0} % n + 1;
    uint32_t word = Next();
    while (word < refused) word = Next();
    return static_cast<int>(word % n);
  }

 private:
  uint32_t Next() {
    if (used_ == 4) {
      block_ = Philox4x32(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return block_[used_++];
  }

  PhiloxKey key_ = {};
  PhiloxBlock counter_ = {};
  PhiloxBlock block_ = {};
  size_t used_ = 4;
};

TEST(OperationsGoldenTest, TensorFlowsDrawsGiveTensorFlowsDistortedBoxes) {
  const std::vector<Golden> goldens = ReadGoldens("boxes");
  ASSERT_EQ(goldens.size(), 6);
  int whole = 0;
  int parts = 0;
  for (const Golden& golden : goldens) {
    const std::vector<float> ranges = golden.Floats("ranges");
    const DistortedBoxOptions options = {
        .ranges = {.min_area = ranges[3],
                   .max_area = ranges[4],
                   .min_aspect = ranges[1],
                   .max_aspect = ranges[2],
                   .attempts = static_cast<int>(golden.Int64s("attempts")[0])},
        .min_object_covered = ranges[0]};
    const std::vector<int64_t> rows = golden.Int64s("boxes");
    ASSERT_EQ(rows.size(), 80 * 8);
    for (size_t i = 0; i < rows.size(); i += 8) {
      const auto at = [&](size_t k) { return static_cast<int>(rows[i + k]); };
      TensorFlowDraws draws(rows[i + 2], rows[i + 3]);
      const CropRect box = DistortedBox(options, at(0), at(1), draws);
      EXPECT_EQ(box, (CropRect{at(4), at(5), at(6), at(7)}))
          << at(0) << " x " << at(1) << " by seed " << rows[i + 2] << ", " << rows[i + 3];
      ++(box == WholeImage(at(0), at(1)) ? whole : parts);
    }
  }
  EXPECT_GT(whole, 40);
  EXPECT_GT(parts, 200);
}

}  // namespace
}  // namespace systole
