// What torchvision made of images (tests/golden/torchvision/README.md), made by trivial_augment.
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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

// A change's number, its strength, whether it is negative.
using Draw = std::tuple<int, int, bool>;

struct Image {
  std::vector<int64_t> shape;
  std::string pixels;
  std::map<Draw, std::string> made;
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
  int TakeByte() { return static_cast<uint8_t>(Take(1)[0]); }

 private:
  absl::string_view rest_;
};

std::vector<Image> Images() {
  const std::string file = ReadWholeFile(kPath);
  Bytes bytes(absl::string_view(file).substr(file.find('\n') + 1));
  std::vector<Image> images;
  while (!bytes.empty()) {
    Image image;
    for (int i = 0; i < 3; ++i) image.shape.push_back(bytes.TakeByte());
    const auto size = static_cast<size_t>(image.shape[0] * image.shape[1] * image.shape[2]);
    image.pixels = bytes.Take(size);
    int cases = bytes.TakeByte();
    cases += 256 * bytes.TakeByte();
    for (int i = 0; i < cases; ++i) {
      const int change = bytes.TakeByte();
      const int strength = bytes.TakeByte();
      const bool negative = bytes.TakeByte() != 0;
      image.made[{change, strength, negative}] = bytes.Take(size);
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

// What the record's example draws: see draws.h. 25 is the operation's number.
Draw DrawOf(int64_t record) {
  CounterRng rng(6, 1, record, 25);
  const auto change = static_cast<int>(rng.UniformInt(0, 14));
  const auto strength = static_cast<int>(rng.UniformInt(0, 31));
  return {change, strength, rng.UniformInt(0, 2) == 1};
}

// Whether a shear or rotation takes value `i` from so near the border of two pixels that rounding
// decides which of them it is. Torchvision rounds in float32.
bool IsBetweenPixels(const Image& image, const Draw& draw, size_t i) {
  const auto [change, strength, negative] = draw;
  const double sign = negative ? -1 : 1;
  const double part = sign * strength * 0.99 / 30;
  const double angle = sign * strength * 4.5 * std::numbers::pi / 180;
  const auto pixel = static_cast<int64_t>(i) / image.shape[2];
  const auto middle_y = static_cast<double>(image.shape[0]) / 2;
  const auto middle_x = static_cast<double>(image.shape[1]) / 2;
  const double y = static_cast<double>(pixel / image.shape[1]) + 0.5;
  const double x = static_cast<double>(pixel % image.shape[1]) + 0.5;
  double from_x = x, from_y = y;
  if (change == 1) from_x += part * y;
  if (change == 2) from_y += part * x;
  if (change == 5) {
    from_x = std::cos(angle) * (x - middle_x) - std::sin(angle) * (y - middle_y) + middle_x;
    from_y = std::sin(angle) * (x - middle_x) + std::cos(angle) * (y - middle_y) + middle_y;
  }
  return std::abs(from_x - std::round(from_x)) < 1e-4 ||
         std::abs(from_y - std::round(from_y)) < 1e-4;
}

TEST(TrivialAugmentTest, MakesTorchvisionsPixels) {
  for (const Image& image : Images()) {
    const Program program = Compile(image.shape);
    std::map<Draw, int> compared;
    for (int64_t record = 0; record < 30000; ++record) {
      auto [change, strength, negative] = DrawOf(record);
      if (change == 10 || change == 11) negative = false;  // posterize and solarize.
      if (change == 0 || change == 12 || change == 13) strength = 0, negative = false;
      const auto want = image.made.find({change, strength, negative});
      if (want == image.made.end() || compared[want->first]++ > 2) continue;
      Value input;
      input.bytes = image.pixels;
      const absl::StatusOr<Value> got =
          program.Interpret(std::move(input), {.seed = 6, .epoch = 1, .record = record});
      ASSERT_THAT(got, IsOk());
      int different = 0, between = 0;
      for (size_t i = 0; i < got->uint8s.size(); ++i) {
        if (got->uint8s[i] == static_cast<uint8_t>(want->second[i])) continue;
        ++(IsBetweenPixels(image, want->first, i) ? between : different);
      }
      EXPECT_LT(between, static_cast<int>(got->uint8s.size() / 5));
      EXPECT_EQ(different, 0) << "change " << change << ", strength " << strength
                              << (negative ? ", negative" : "") << ", image of " << image.shape[0]
                              << " rows";
    }
    EXPECT_EQ(compared.size(), image.made.size());
  }
}

TEST(TrivialAugmentTest, TakesUint8ImagesAlone) {
  google::protobuf::RepeatedPtrField<v1::Transform> transforms;
  transforms.Add()->mutable_trivial_augment();
  EXPECT_THAT(
      Program::Create(transforms, {.element = ElementType::kFloat32, .shape = {4, 5, 3}}, {}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("wants uint8 images, but gets float32")));
}

}  // namespace
}  // namespace systole
