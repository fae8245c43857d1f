// Compares trivial_augment with torchvision's images (tests/golden/torchvision/README.md).
#include <zlib.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/operations/program.h"
#include "core/random/counter_rng.h"
#include "core/status/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

constexpr char kPath[] =
    "tests/golden/torchvision/trivial-augment.bin";  // From the top of the tree.

// The number of the change that trivial_augment makes, the change's strength, and whether the
// strength is negative.
using Draw = std::tuple<int, int, bool>;

struct Made {
  uint32_t crc = 0;
  std::string pixels;  // Empty if the file has only the CRC-32.
};

struct Image {
  std::vector<int64_t> shape;
  std::string pixels;
  std::map<Draw, Made> made;
};

class Bytes {
 public:
  explicit Bytes(absl::string_view rest) : rest_(rest) {}

  bool empty() const { return rest_.empty(); }
  std::string Take(size_t count) {
    SYSTOLE_CHECK(count <= rest_.size());
    const std::string taken(rest_.substr(0, count));
    rest_.remove_prefix(count);
    return taken;
  }
  uint32_t TakeNumber(size_t bytes) {  // Little endian.
    uint32_t number = 0;
    size_t shift = 0;
    for (const char byte : Take(bytes)) {
      number |= uint32_t{static_cast<uint8_t>(byte)} << shift;
      shift += 8;
    }
    return number;
  }

 private:
  absl::string_view rest_;
};

// Draws pixels as the script that made the file does.
std::string Drawn(size_t size) {
  std::string pixels;
  uint32_t x = 1;
  for (size_t i = 0; i < size; ++i) {
    x = 1664525 * x + 1013904223;
    pixels.push_back(static_cast<char>(x >> 24));
  }
  return pixels;
}

std::vector<Image> Images() {
  const std::string file = ReadWholeFile(kPath);
  Bytes bytes(absl::string_view(file).substr(file.find('\n') + 1));
  std::vector<Image> images;
  while (!bytes.empty()) {
    Image image;
    for (const size_t width : {2, 2, 1}) image.shape.push_back(bytes.TakeNumber(width));
    const bool drawn = bytes.TakeNumber(1) != 0;
    const auto size = static_cast<size_t>(image.shape[0] * image.shape[1] * image.shape[2]);
    image.pixels = drawn ? Drawn(size) : bytes.Take(size);
    const uint32_t cases = bytes.TakeNumber(2);
    for (uint32_t i = 0; i < cases; ++i) {
      const auto change = static_cast<int>(bytes.TakeNumber(1));
      const auto strength = static_cast<int>(bytes.TakeNumber(1));
      const bool negative = bytes.TakeNumber(1) != 0;
      Made& made = image.made[{change, strength, negative}];
      made.crc = bytes.TakeNumber(4);
      const bool shown = strength <= 1 || strength == 15 || strength == 16 || strength == 30;
      if (shown && !drawn) made.pixels = bytes.Take(size);
    }
    images.push_back(std::move(image));
  }
  return images;
}

Program Compile(const std::vector<int64_t>& shape) {
  google::protobuf::RepeatedPtrField<v1::Transform> transforms;
  transforms.Add()->mutable_decode_raw();
  transforms.Add()->mutable_trivial_augment();
  absl::StatusOr<Program> program = Program::Create(transforms, {}, shape);
  SYSTOLE_CHECK(program.ok());
  return *std::move(program);
}

// The draw of trivial_augment for this record's example (see draws.h). 25 is the number of
// trivial_augment.
Draw DrawOf(int64_t record) {
  CounterRng rng(6, 1, record, 25);
  const auto change = static_cast<int>(rng.UniformInt(0, 14));
  const auto strength = static_cast<int>(rng.UniformInt(0, 31));
  return {change, strength, rng.UniformInt(0, 2) == 1};
}

// Maps each draw to a record that has this draw. If a change has no strength or no sign, that part
// of the draw counts as 0.
std::map<Draw, int64_t> Records() {
  std::map<Draw, int64_t> records;
  for (int64_t record = 0; record < 30000; ++record) {
    auto [change, strength, negative] = DrawOf(record);
    if (change == 10 || change == 11) negative = false;  // posterize and solarize.
    if (change == 0 || change == 12 || change == 13) strength = 0, negative = false;
    records[{change, strength, negative}] = record;
  }
  return records;
}

TEST(TrivialAugmentTest, MakesTorchvisionsPixels) {
  const std::map<Draw, int64_t> records = Records();
  const std::vector<Image> images = Images();
  ASSERT_EQ(images.size(), 14);
  for (const Image& image : images) {
    const Program program = Compile(image.shape);
    ASSERT_EQ(image.made.size(), 9 * 62 + 2 * 31 + 3);
    for (const auto& [draw, want] : image.made) {
      const auto record = records.find(draw);
      ASSERT_NE(record, records.end());
      Value input;
      input.bytes = image.pixels;
      const absl::StatusOr<Value> got =
          program.Interpret(std::move(input), {.seed = 6, .epoch = 1, .record = record->second});
      ASSERT_THAT(got, IsOk());
      const auto [change, strength, negative] = draw;
      SCOPED_TRACE(absl::StrCat("change ", change, ", strength ", strength,
                                negative ? ", negative" : "", ", image of ", image.shape[0], " x ",
                                image.shape[1]));
      EXPECT_EQ(crc32(0, got->uint8s.data(), static_cast<uInt>(got->uint8s.size())), want.crc);
      if (want.pixels.empty()) continue;
      EXPECT_EQ(std::string(got->uint8s.begin(), got->uint8s.end()), want.pixels);
    }
  }
}

TEST(TrivialAugmentTest, TakesUint8ImagesAndNoOtherElementType) {
  google::protobuf::RepeatedPtrField<v1::Transform> transforms;
  transforms.Add()->mutable_trivial_augment();
  const auto create = [&](ElementType element) {
    return Program::Create(transforms, {.element = element, .shape = {4, 5, 3}}, {});
  };
  EXPECT_THAT(create(ElementType::kUint8), IsOk());
  EXPECT_THAT(create(ElementType::kFloat32),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("needs uint8 images, but gets float32")));
  EXPECT_THAT(create(ElementType::kInt64),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("but gets int64")));
  EXPECT_THAT(create(ElementType::kBytes),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("but gets bytes")));
}

}  // namespace
}  // namespace systole
