// Checks each claim of the operation table about TensorFlow's values.
//
// For a claim "within ..", TensorFlow's formula is written plainly, in float32 and in TensorFlow's
// order. Its results are compared with ours over the whole range of inputs. The number in the table
// is the bound. A claim "exact" is checked here, or by operations_golden_test and
// tensorflow_colour_test, which compare with TensorFlow's own results in tests/golden/tensorflow.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/example/example_parser.h"
#include "core/operations/ops/operation_table.h"
#include "core/operations/program.h"
#include "core/random/counter_rng.h"
#include "core/record/tfrecord/record_reader.h"
#include "core/storage/local/file_source.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr float kLeastNormal = std::numeric_limits<float>::min();

// The result of `transform` on an image.
Value Make(const std::string& transform, Value image) {
  v1::Output output;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(transform, output.add_transforms()))
      << transform;
  const absl::StatusOr<Program> program =
      Program::Create(output.transforms(), image.type, image.type.shape);
  EXPECT_THAT(program, IsOk()) << transform;
  absl::StatusOr<Value> value = program->Interpret(std::move(image), {});
  EXPECT_THAT(value, IsOk()) << transform;
  return *std::move(value);
}

Value Floats(std::vector<int64_t> shape, std::vector<float> values) {
  Value value;
  value.type = {.element = ElementType::kFloat32, .shape = std::move(shape)};
  value.floats = std::move(values);
  return value;
}

Value Column(std::vector<float> values) {
  const auto height = static_cast<int64_t>(values.size());
  return Floats({height, 1, 1}, std::move(values));
}

Value AllUint8s() {
  Value value = Value::Create(ElementType::kUint8, {16, 16, 1});
  for (size_t i = 0; i < 256; ++i) value.uint8s[i] = static_cast<uint8_t>(i);
  return value;
}

float Between(CounterRng& rng, float low, float high) {
  return low + rng.UniformFloat() * (high - low);
}

// Draws a positive number of any size from 2^low to 2^high.
float Magnitude(CounterRng& rng, int low, int high) {
  const int exponent = low + static_cast<int>(rng.NextU32() % static_cast<uint32_t>(high - low));
  return std::ldexp(1 + rng.UniformFloat(), exponent);
}

// Returns floats of every kind: those whose bits, read as a uint32, are a multiple of `stride`.
std::vector<float> AllFloats(uint32_t stride) {
  std::vector<float> floats;
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += stride) {
    floats.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  return floats;
}

// tf.image.convert_image_dtype of uint8 to float, and back with saturate=True.
float ToUnit(uint8_t x) { return static_cast<float>(x) * (1.0f / 255.0f); }
uint8_t FromUnit(float x) {
  const float scaled = x * 255.5f;
  return static_cast<uint8_t>(std::min(std::max(scaled, 0.0f), 255.0f));
}

// The largest of the distances that were added, or infinity if one of them is NaN.
class Worst {
 public:
  void Add(double distance) {
    if (distance <= worst_) return;
    worst_ = std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance;
  }
  double get() const { return worst_; }

 private:
  double worst_ = 0;
};

// A check returns one number for each "within" in the claim, in the claim's order: the largest
// distance of our values from the formula's. For an "exact" in the claim, the check itself expects
// equal values.
using Distances = std::vector<double>;

// Computes (x * scale - mean) / stddev, with constants of float32.
Distances CheckNormalize() {
  CounterRng rng(1, 2, 3, 4);
  Worst worst;
  const auto compare = [&](float scale, float mean, float stddev, const std::vector<float>& xs) {
    const std::string transform =
        absl::StrCat("normalize { scale: ", scale, " mean: ", mean, " stddev: ", stddev, " }");
    v1::Transform parsed;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(transform, &parsed));
    // The formula uses the constants of the parsed text, because the text has fewer digits than
    // `mean`, `stddev` and `scale`.
    const auto m = static_cast<float>(parsed.normalize().mean(0));
    const auto s = static_cast<float>(parsed.normalize().stddev(0));
    const auto k = static_cast<float>(parsed.normalize().scale());
    const Value made = Make(transform, Column(xs));
    for (size_t i = 0; i < xs.size(); ++i) {
      const float want = (xs[i] * k - m) / s;
      const double unit = (std::fabs(double{xs[i]} * k) + std::fabs(m)) / s;
      worst.Add(std::fabs(double{made.floats[i]} - want) / unit);
    }
  };
  std::vector<float> levels(256);
  for (size_t i = 0; i < levels.size(); ++i) levels[i] = static_cast<float>(i);
  for (const float mean : {123.68f, 116.78f, 103.94f}) compare(1, mean, 57.375f, levels);
  for (const auto& [mean, stddev] :
       {std::pair(0.485f, 0.229f), {0.456f, 0.224f}, {0.406f, 0.225f}}) {
    compare(1.0f / 255.0f, mean, stddev, levels);
  }
  for (int i = 0; i < 3000; ++i) {
    const float scale = i % 2 == 0 ? 1 : Magnitude(rng, -10, 10);
    const float mean = (i % 3 == 0 ? -1.0f : 1.0f) * Magnitude(rng, -30, 30);
    std::vector<float> xs = {0, 1, 255, mean / scale};
    for (int k = 0; k < 100; ++k) {
      xs.push_back(Magnitude(rng, -30, 30) * (k % 2 == 0 ? -1.0f : 1.0f));
      xs.push_back(mean / scale * Between(rng, 0.999f, 1.001f));
      xs.push_back(mean / scale * (1 + static_cast<float>(k) * 0x1p-23f));
    }
    compare(scale, mean, Magnitude(rng, -30, 30), xs);
  }
  return {worst.get()};
}

// Sums float32 values as TensorFlow's CPU kernel does: splits the values in halves until a part has
// at most 256 * 4 vectors, and then adds four vectors at a time. A vector has `vector` floats; the
// number depends on the CPU.
float SumOf(absl::Span<const float> x, size_t vector) {
  if (x.size() > 256 * 4 * vector) {
    const size_t half = (x.size() / 2 + vector - 1) / vector * vector;
    return SumOf(x.subspan(0, half), vector) + SumOf(x.subspan(half), vector);
  }
  std::vector<float> sums(4 * vector);
  for (size_t i = 0; i < x.size(); ++i) sums[i % sums.size()] += x[i];
  while (sums.size() > 1) {
    const size_t half = sums.size() / 2;
    for (size_t i = 0; i < half; ++i) sums[i] += sums[half + i];
    sums.resize(half);
  }
  return sums[0];
}

std::vector<float> Standardized(const std::vector<float>& x, size_t vector) {
  const auto count = static_cast<float>(x.size());
  const float mean = SumOf(x, vector) / count;
  std::vector<float> squares;
  for (const float value : x) squares.push_back((value - mean) * (value - mean));
  const float stddev = std::sqrt(SumOf(squares, vector) / count);
  const float divisor = std::max(stddev, 1.0f / std::sqrt(count));
  std::vector<float> made;
  for (const float value : x) made.push_back((value - mean) / divisor);
  return made;
}

Distances CheckPerImageStandardization() {
  CounterRng rng(5, 6, 7, 8);
  Worst worst;
  const auto compare = [&](std::vector<int64_t> shape, const std::vector<float>& x) {
    // `largest` is a divisor below, so it is not 0, even if the image is black.
    double sum = 0, squares = 0, largest = kLeastNormal;
    for (const float value : x) sum += value;
    const auto count = static_cast<double>(x.size());
    for (const float value : x) {
      squares += (value - sum / count) * (value - sum / count);
      largest = std::max(largest, std::fabs(double{value}));
    }
    const double deviation = std::max(std::sqrt(squares / count), 1 / std::sqrt(count));
    const Value made = Make("per_image_standardization {}", Floats(std::move(shape), x));
    for (const size_t vector : {4, 8, 16}) {
      const std::vector<float> want = Standardized(x, vector);
      for (size_t i = 0; i < x.size(); ++i) {
        const double difference = std::fabs(double{made.floats[i]} - want[i]);
        worst.Add(difference / (largest / deviation));
      }
    }
  };
  std::vector<std::vector<int64_t>> shapes = {{1, 1, 3},   {7, 9, 3},     {32, 32, 3},
                                              {97, 61, 1}, {128, 128, 1}, {224, 224, 3}};
  if (kSanitized) shapes.resize(4);
  for (const std::vector<int64_t>& shape : shapes) {
    const auto count = static_cast<size_t>(shape[0] * shape[1] * shape[2]);
    // Compares images of one colour, images of two colours (one may be rare), noise and ramps. The
    // contrast of noise and ramps is low or high.
    for (const float value : {1.0f, 77.0f, 255.0f, 0.1f, 0.3f, 0.9f, 1e-3f, 123.456f, 1e14f}) {
      compare(shape, std::vector<float>(count, value));
    }
    for (const size_t rare : {size_t{1}, size_t{3}, size_t{31}, count / 10, count / 3, count / 2}) {
      for (const auto& [low, high] : {std::pair(0.0f, 1.0f), {0.1f, 100.0f}, {100.0f, 101.0f}}) {
        std::vector<float> x(count, low);
        for (size_t i = 0; i < std::min(rare, count); ++i) x[i] = high;
        compare(shape, x);
        for (size_t i = 0; i < count; ++i) x[i] = rng.NextU32() % count < rare ? high : low;
        compare(shape, x);
      }
    }
    for (const float width : {1e-4f, 1e-2f, 1.0f, 40.0f, 256.0f}) {
      std::vector<float> noise(count), ramp(count), whole(count);
      for (size_t i = 0; i < count; ++i) {
        noise[i] = Between(rng, 128 - width / 2, 128 + width / 2);
        ramp[i] = width * static_cast<float>(i) / static_cast<float>(count);
        whole[i] = std::floor(noise[i]);
      }
      for (const auto& x : {noise, ramp, whole}) compare(shape, x);
    }
  }
  return {worst.get()};
}

// Computes gain * x ^ gamma.
Distances CheckGamma() {
  Worst worst;
  Worst levels;
  const std::vector<float> all = AllFloats(65537 * 3);
  std::vector<float> unit;
  for (float x = 0x1p-20f; x < 4; x *= 1.003f) unit.push_back(x);
  for (const float gamma : {0.01f, 0.1f, 0.45f, 0.5f, 1.0f, 1.7f, 2.2f, 3.0f, 17.5f, 100.0f}) {
    for (const float gain : {1.0f, 0.5f, 1.3f, -2.0f, 1e10f, 1e-10f}) {
      const std::string transform =
          absl::StrCat("gamma { gamma_min: ", gamma, " gamma_max: ", gamma, " gain: ", gain, " }");
      for (const std::vector<float>& xs : {all, unit}) {
        const Value made = Make(transform, Column(xs));
        for (size_t i = 0; i < xs.size(); ++i) {
          const float power = std::pow(xs[i], gamma);
          const float want = gain * power;
          if (std::isnan(want)) {
            EXPECT_TRUE(std::isnan(made.floats[i])) << xs[i] << " " << transform;
          } else if (std::isnormal(xs[i]) && std::isnormal(power) && std::isnormal(want)) {
            worst.Add(std::fabs(double{made.floats[i]} - want) / std::fabs(want));
          }
        }
      }
      const Value made = Make(transform, AllUint8s());
      for (int i = 0; i < 256; ++i) {
        const int want = FromUnit(gain * std::pow(ToUnit(static_cast<uint8_t>(i)), gamma));
        levels.Add(std::abs(made.uint8s[static_cast<size_t>(i)] - want));
      }
    }
  }
  return {worst.get(), levels.get()};
}

// Computes x + delta.
Distances CheckBrightness() {
  const std::vector<float> all = AllFloats(65537);
  for (const float delta : {-1.0f, -0.3f, -0.001f, 0.1f, 0.5f, 0.999f, 100.0f}) {
    const std::string transform =
        absl::StrCat("brightness { delta_min: ", delta, " delta_max: ", delta, " }");
    const Value floats = Make(transform, Column(all));
    for (size_t i = 0; i < all.size(); ++i) {
      const float want = all[i] + delta;
      if (std::isnan(want)) continue;
      EXPECT_EQ(floats.floats[i], want) << all[i] << " " << transform;
    }
    const Value uint8s = Make(transform, AllUint8s());
    for (size_t i = 0; i < 256; ++i) {
      EXPECT_EQ(uint8s.uint8s[i], FromUnit(ToUnit(static_cast<uint8_t>(i)) + delta)) << transform;
    }
  }
  return {};
}

// tf.round rounds halves to the nearest even number.
Distances CheckRoundToUint8() {
  std::vector<float> xs = AllFloats(4099);
  for (int i = 0; i < 255; ++i) xs.push_back(static_cast<float>(i) + 0.5f);
  const Value made = Make("round_to_uint8 {}", Column(xs));
  for (size_t i = 0; i < xs.size(); ++i) {
    const int want = !(xs[i] > 0) ? 0 : xs[i] > 255 ? 255 : static_cast<int>(std::nearbyint(xs[i]));
    EXPECT_EQ(made.uint8s[i], want) << xs[i];
  }
  return {};
}

struct Kernel {
  const char* name;
  float radius;
  float (*at)(float radius, float x);
};

// Moves x up or down by one unit in its last place. libm's sine and exponential may be wrong by as
// much.
float Nudged(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const float infinity = std::numeric_limits<float>::infinity();
  return std::nextafter(x, (bits * 2654435761u) >> 31 == 0 ? infinity : -infinity);
}

float Lanczos(float radius, float x) {
  constexpr float kPi = 3.14159265359f;
  if (x > radius) return 0;
  if (x <= 1e-3f) return 1;
  return radius * Nudged(std::sin(kPi * x)) * Nudged(std::sin(kPi * x / radius)) /
         (kPi * kPi * x * x);
}

float Gaussian(float radius, float x) {
  const float sigma = radius / 3;
  return x >= radius ? 0 : Nudged(std::exp(static_cast<float>(-x * x / (2.0 * sigma * sigma))));
}

// The weights of TensorFlow's ScaleAndTranslate along one edge, as a table [out, in].
std::vector<std::vector<float>> WeightsOf(const Kernel& kernel, int in, int out, bool antialias) {
  const float inverse_scale = 1.0f / (static_cast<float>(out) / static_cast<float>(in));
  const float stretch = antialias ? std::max(inverse_scale, 1.0f) : 1.0f;
  const float reach = kernel.radius * stretch;
  std::vector<std::vector<float>> weights;
  for (int i = 0; i < out; ++i) {
    std::vector<float>& row = weights.emplace_back(static_cast<size_t>(in));
    const float centre = (static_cast<float>(i) + 0.5f) * inverse_scale;
    if (centre > static_cast<float>(in)) continue;
    const int first = std::max(static_cast<int>(std::ceil(centre - reach - 0.5f)), 0);
    const int last = std::min(static_cast<int>(std::floor(centre + reach - 0.5f)), in - 1);
    float sum = 0;
    for (int k = std::min(first, in - 1); k <= std::max(last, 0); ++k) {
      const float distance = (static_cast<float>(k) + 0.5f - centre) * (1.0f / stretch);
      float& weight = row[static_cast<size_t>(k)];
      weight = kernel.at(kernel.radius, std::fabs(distance));
      sum += weight;
    }
    for (float& weight : row) weight *= std::fabs(sum) < 1000 * kLeastNormal ? 0 : 1 / sum;
  }
  return weights;
}

// Resizes `height` x `width` pixels to `out` x `out`.
struct Sizes {
  int height;
  int width;
  int out;
};

Distances CheckKernels(const std::string& operation, absl::Span<const Sizes> sizes) {
  constexpr Kernel kKernels[] = {
      {"LANCZOS3", 3, Lanczos}, {"LANCZOS5", 5, Lanczos}, {"GAUSSIAN", 1.5f, Gaussian}};
  CounterRng rng(9, 10, 11, 12);
  Worst worst;
  const auto compare = [&](const Kernel& kernel, const Sizes& size, bool antialias,
                           const std::vector<float>& image) {
    const std::string transform =
        absl::StrCat(operation, " { height: ", size.out, " width: ", size.out,
                     " method: ", kernel.name, antialias ? " antialias: true" : "", " }");
    const Value made = Make(transform, Floats({size.height, size.width, 1}, image));
    const auto rows = WeightsOf(kernel, size.height, size.out, antialias);
    const auto columns = WeightsOf(kernel, size.width, size.out, antialias);
    const auto width = static_cast<size_t>(size.width);
    double largest = 0;
    for (const float x : image) largest = std::max(largest, std::fabs(double{x}));
    for (size_t row = 0; row < rows.size(); ++row) {
      std::vector<float> line(width);  // The height is resized before the width.
      for (size_t i = 0; i < image.size(); ++i) line[i % width] += rows[row][i / width] * image[i];
      for (size_t column = 0; column < columns.size(); ++column) {
        float want = 0;
        for (size_t x = 0; x < width; ++x) want += columns[column][x] * line[x];
        const float got = made.floats[row * columns.size() + column];
        worst.Add(std::fabs(double{got} - want) / largest);
      }
    }
  };
  for (const Kernel& kernel : kKernels) {
    for (const Sizes& size : sizes) {
      const auto width = static_cast<size_t>(size.width);
      const size_t count = static_cast<size_t>(size.height) * width;
      // Images of noise of two magnitudes, of one colour, of stripes and of squares. Averaged by a
      // kernel, stripes and squares give values near 0.
      std::vector<std::vector<float>> images(5, std::vector<float>(count));
      for (size_t i = 0; i < count; ++i) {
        images[0][i] = Between(rng, 0, 255);
        images[1][i] = Between(rng, -1e20f, 1e20f);
        images[2][i] = 0.7f;
        images[3][i] = i % width % 2 == 0 ? 255 : -255;
        images[4][i] = (i % width + i / width) % 2 == 0 ? 1 : -1;
      }
      for (const std::vector<float>& image : images) {
        for (const bool antialias : {false, true}) compare(kernel, size, antialias, image);
      }
    }
  }
  return {worst.get()};
}

Distances CheckResize() {
  return CheckKernels("resize", {{1, 1, 5},
                                 {2, 5, 1},
                                 {3, 7, 8},
                                 {9, 17, 31},
                                 {32, 40, 8},
                                 {31, 64, 37},
                                 {97, 61, 11},
                                 {64, 64, 128},
                                 // With these sizes each result sums many weights.
                                 {500, 75, 100},
                                 {4000, 2, 7},
                                 {3, 16384, 2}});
}

// These images are square, so they are not padded. The golden cases test padding.
Distances CheckResizeWithPad() {
  return CheckKernels("resize_with_pad",
                      {{1, 1, 5}, {2, 2, 1}, {9, 9, 31}, {17, 17, 3}, {97, 97, 11}, {64, 64, 128}});
}

// A crop of the whole image must equal the resize.
Distances CheckRandomResizedCrop() {
  CounterRng rng(13, 14, 15, 16);
  Value image = Value::Create(ElementType::kUint8, {12, 12, 3});
  for (uint8_t& x : image.uint8s) x = static_cast<uint8_t>(rng.NextU32());
  for (const char* const size : {"height: 5 width: 9", "height: 30 width: 12"}) {
    for (const char* const method : {"BILINEAR", "BICUBIC", "AREA", "MITCHELLCUBIC"}) {
      const std::string fields = absl::StrCat(size, " method: ", method);
      const Value crop =
          Make(absl::StrCat("random_resized_crop { ", fields,
                            " area_min: 1 area_max: 1 aspect_min: 1 aspect_max: 1 }"),
               image);
      EXPECT_EQ(crop.floats, Make(absl::StrCat("resize { ", fields, " }"), image).floats) << fields;
    }
  }
  return {};
}

struct Check {
  Distances (*formula)() = nullptr;
  // The file of tests/golden/tensorflow that has cases of the operation.
  const char* golden = nullptr;
};

const std::map<std::string, Check>& Checks() {
  static const auto* const checks = new std::map<std::string, Check>{
      {"decode_jpeg", {.golden = "decode"}},
      {"decode_raw", {.golden = "decode"}},
      {"random_resized_crop", {.formula = CheckRandomResizedCrop}},
      {"random_crop", {.golden = "colour"}},
      {"resize", {.formula = CheckResize, .golden = "geometry"}},
      {"random_flip", {.golden = "colour"}},
      {"brightness", {.formula = CheckBrightness, .golden = "colour"}},
      {"round_to_uint8", {.formula = CheckRoundToUint8}},
      {"normalize", {.formula = CheckNormalize}},
      {"resize_with_pad", {.formula = CheckResizeWithPad, .golden = "geometry"}},
      {"crop_or_pad", {.golden = "geometry"}},
      {"central_crop", {.golden = "geometry"}},
      {"crop", {.golden = "geometry"}},
      {"tf.io.decode_and_crop_jpeg", {.golden = "decode"}},
      {"pad", {.golden = "geometry"}},
      {"flip_left_right", {.golden = "geometry"}},
      {"flip_up_down", {.golden = "geometry"}},
      {"transpose", {.golden = "geometry"}},
      {"rot90", {.golden = "geometry"}},
      {"contrast", {.golden = "colour"}},
      {"saturation", {.golden = "colour"}},
      {"hue", {.golden = "colour"}},
      {"gamma", {.formula = CheckGamma, .golden = "colour"}},
      {"grayscale", {.golden = "colour"}},
      {"per_image_standardization", {.formula = CheckPerImageStandardization, .golden = "colour"}},
      {"cast", {.golden = "colour"}},
      {"clip_by_value", {.golden = "colour"}},
      {"one_hot", {.golden = "colour"}},
      {"label_map", {.golden = "colour"}},
      {"decode_png", {.golden = "decode"}},
      {"decode_image", {.golden = "decode"}},
  };
  return *checks;
}

// Maps the name of each operation to what the operation table claims about its parity with
// TensorFlow. If a TensorFlow function does the work of two of our operations, the function's name
// is mapped to the claim for the two together. A text with nothing but "different: .." claims
// nothing, and is left out.
std::map<std::string, std::string> Claims() {
  std::map<std::string, std::string> claims;
  const auto add = [&claims](absl::string_view name, absl::string_view parity) {
    for (const char* const word : {"exact", "within", "draws as"}) {
      if (absl::StrContains(parity, word)) claims[std::string(name)] = std::string(parity);
    }
  };
  for (const OperationRow& row : Operations()) {
    add(OperationName(row.kind), row.guide.parity);
    add(row.guide.combined_tensorflow, row.guide.combined_parity);
  }
  for (const MixRow& row : MixOperations()) add(row.name, row.guide.parity);
  return claims;
}

// The numbers after "within".
std::vector<double> BoundsOf(const std::string& claim) {
  std::vector<double> bounds;
  const std::string word = "within ";
  for (size_t at = claim.find(word); at != std::string::npos; at = claim.find(word, at + 1)) {
    bounds.push_back(std::strtod(claim.c_str() + at + word.size(), nullptr));
  }
  return bounds;
}

TEST(ParityTest, EveryClaimHasACheck) {
  const std::map<std::string, std::string> claims = Claims();
  for (const auto& [name, claim] : claims) {
    const auto check = Checks().find(name);
    if (check == Checks().end()) {
      ADD_FAILURE() << name << " is \"" << claim << "\", but Checks() has no check of it";
      continue;
    }
    if (BoundsOf(claim).empty()) continue;
    EXPECT_NE(check->second.formula, nullptr)
        << name << " has a bound, but no formula to compare with: " << claim;
  }
  for (const auto& [name, check] : Checks()) EXPECT_TRUE(claims.contains(name)) << name;
}

class BoundTest : public testing::TestWithParam<std::string> {};

TEST_P(BoundTest, HoldsOverTheWholeRange) {
  const std::string claim = Claims()[GetParam()];
  SCOPED_TRACE(claim);
  const std::vector<double> bounds = BoundsOf(claim);
  const Distances distances = Checks().at(GetParam()).formula();
  ASSERT_EQ(distances.size(), bounds.size());
  for (size_t i = 0; i < bounds.size(); ++i) EXPECT_LE(distances[i], bounds[i]);
}

std::vector<std::string> NamesOfFormulas() {
  std::vector<std::string> names;
  for (const auto& [name, check] : Checks()) {
    if (check.formula != nullptr) names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Parity, BoundTest, testing::ValuesIn(NamesOfFormulas()),
                         [](const auto& info) { return info.param; });

// Returns the text of the transforms in all cases of a golden file.
std::string TransformsOf(const std::string& golden) {
  const auto source =
      FileSource::Open(absl::StrCat("tests/golden/tensorflow/", golden, ".tfrecord"));
  EXPECT_THAT(source, IsOk());
  absl::StatusOr<RecordReader> reader = RecordReader::Create(**source);
  EXPECT_THAT(reader, IsOk());
  std::string transforms;
  while (true) {
    const auto record = reader->Next();
    EXPECT_THAT(record, IsOk());
    if (!record.ok() || !record->has_value()) return transforms;
    const absl::StatusOr<ExampleView> example = ExampleView::Parse(**record);
    EXPECT_THAT(example, IsOk());
    for (const char* const name : {"output", "transforms"}) {
      const absl::StatusOr<absl::string_view> text = example->Find(name).BytesAt(0);
      if (text.ok()) absl::StrAppend(&transforms, *text, "\n");
    }
    if (example->Find("decode_and_crop").kind() != FeatureKind::kMissing) {
      absl::StrAppend(&transforms, "{ tf.io.decode_and_crop_jpeg {\n");
    }
  }
}

TEST(ParityTest, EachGoldenFileHasCasesOfEveryOperationItChecks) {
  std::map<std::string, std::string> transforms;
  for (const auto& [name, check] : Checks()) {
    if (check.golden == nullptr) continue;
    std::string& text = transforms[check.golden];
    if (text.empty()) text = TransformsOf(check.golden);
    EXPECT_TRUE(absl::StrContains(text, absl::StrCat("{ ", name, " {"))) << name;
  }
}

}  // namespace
}  // namespace systole
