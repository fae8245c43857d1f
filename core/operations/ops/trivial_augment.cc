// TrivialAugmentWide of torchvision.transforms.v2, for tensors. The comment of TrivialAugment in
// feed.proto says what each of the 14 changes does.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "core/interrupt/interrupt.h"
#include "core/numeric/math.h"
#include "core/operations/ops/operation_rows.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// In the order of torchvision's table. The operation draws one of these numbers.
enum class Change {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
};
constexpr int kChanges = 14;
constexpr int kStrengths = 31;

// sum + factor * x, as in torch: the product is not rounded. A double holds all its 48 bits.
float Added(float sum, float factor, float x) {
  return static_cast<float>(double{factor} * double{x} + double{sum});
}

// Value i of torch.linspace(from, to, count). Like torch, this function computes the value from the
// nearer end of the range, and rounds only the step and the value to float32. All else is computed
// in double precision.
float Spaced(float from, float to, int64_t count, int64_t i) {
  if (count == 1) return from;
  const double step = (to - from) / static_cast<float>(count - 1);
  return static_cast<float>(i < count / 2 ? from + step * static_cast<double>(i)
                                          : to - step * static_cast<double>(count - 1 - i));
}

// Maps a pixel (x, y) of the result to its source: the place (x', y') of the input whose value the
// pixel gets. (0, 0) is the middle of the image.
// x' = xx * x + xy * y + x0, y' = yx * x + yy * y + y0.
struct InverseMap {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;
};

// Computes one coordinate of each pixel's source, with the steps and roundings of torchvision: in
// float32, as a number that runs from -1 to 1 across the image. So this code chooses the same pixel
// as torchvision, even where a source lies halfway between two pixels.
class SourceLine {
 public:
  // `of_x`, `of_y` and `offset` are a row of InverseMap, such as xx, xy and x0. `edge` is the
  // image's size along the coordinate.
  SourceLine(double of_x, double of_y, double offset, int64_t edge)
      : of_x_(InHalves(of_x, edge)),
        of_y_(InHalves(of_y, edge)),
        offset_(InHalves(offset, edge)),
        half_(0.5f * static_cast<float>(edge)) {}

  // The source's column or row for the pixel at (x, y). It may be outside of the image.
  float At(float x, float y) const {
    const float source = (x * of_x_ + y * of_y_) + offset_;
    return std::nearbyint(Added(-0.5f, half_, source + 1.0f));
  }

 private:
  static float InHalves(double x, int64_t edge) {
    return static_cast<float>(x) / (0.5f * static_cast<float>(edge));
  }

  float of_x_, of_y_, offset_, half_;
};

// The coordinate of each pixel's middle in a row or column of `count` pixels. 0 is the middle of
// the image.
std::vector<float> Middles(int64_t count) {
  const float end = (static_cast<float>(count) - 1.0f) * 0.5f;
  std::vector<float> middles;
  for (int64_t i = 0; i < count; ++i) middles.push_back(Spaced(-end, end, count, i));
  return middles;
}

Value Move(const Value& image, const InverseMap& map) {
  Value moved = Value::Create(ElementType::kUint8, image.type.shape);
  const int64_t height = image.height(), width = image.width(), channels = image.channels();
  const std::vector<float> xs = Middles(width);
  const std::vector<float> ys = Middles(height);
  const SourceLine columns(map.xx, map.xy, map.x0, width);
  const SourceLine rows(map.yx, map.yy, map.y0, height);
  for (int64_t row = 0; row < height && !InterruptRequested(); ++row) {
    const float y = ys[static_cast<size_t>(row)];
    for (int64_t column = 0; column < width; ++column) {
      const float x = xs[static_cast<size_t>(column)];
      const float from_x = columns.At(x, y);
      const float from_y = rows.At(x, y);
      if (!(from_x >= 0 && from_x < static_cast<float>(width) && from_y >= 0 &&
            from_y < static_cast<float>(height))) {
        continue;
      }
      const int64_t from = static_cast<int64_t>(from_y) * width + static_cast<int64_t>(from_x);
      std::copy_n(&image.uint8s[static_cast<size_t>(from * channels)], channels,
                  &moved.uint8s[static_cast<size_t>((row * width + column) * channels)]);
    }
  }
  return moved;
}

// Each strength has a shear s. torchvision does not use s itself. It uses
// tan(radians(degrees(atan(s)))) in the horizontal direction, and a similar formula in the vertical
// direction. For each strength, the tables say how much the formula's result differs from s, in
// units in the last place of a double. The difference matters if it changes the float to which s,
// or a product of s, is rounded.
constexpr int8_t kShearXUnits[kStrengths] = {0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0,  0,  0, 1,  0, -1,
                                             0, 0, -1, 2, 0, 0, 2, 0, 0, 1, -1, -1, 1, -1, 0};
constexpr int8_t kShearYUnits[kStrengths] = {0, 0, -1, 0, 0, 0, 1, 1, 0, 1, 0,  0, 0, 1,  0, -1,
                                             0, 0, 0,  1, 1, 0, 2, 0, 0, 0, -1, 0, 0, -1, 0};

double Sheared(float shear, int units) {
  const double magnitude = std::fabs(shear);
  const double moved = std::bit_cast<double>(std::bit_cast<int64_t>(magnitude) + units);
  return shear < 0 ? -moved : moved;
}

InverseMap Rotation(int strength, bool negative) {
  const double cosine = CosPi(strength / 40.0);  // A strength of n is a turn by n * 4.5 degrees.
  const double sine = (negative ? -1.0 : 1.0) * CosPi(0.5 - strength / 40.0);
  return {.xx = cosine, .xy = -sine, .yx = sine, .yy = cosine};
}

uint8_t CutOff(float value) { return static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f)); }

// Replaces each value i of `image` by f * value + (1 - f) * other(i), with f = 1 + part.
template <typename Other>
void Mix(float part, const Other& other, Value& image) {
  const double factor = 1.0 + part;
  const auto of_image = static_cast<float>(factor);
  const auto of_other = static_cast<float>(1.0 - factor);
  InParts(image.uint8s.size(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float own = of_image * static_cast<float>(image.uint8s[i]);
      image.uint8s[i] = CutOff(Added(own, of_other, other(i)));
    }
  });
}

// The grey of each pixel.
std::vector<uint8_t> GreyOf(const Value& image) {
  if (image.channels() == 1) return image.uint8s;
  std::vector<uint8_t> grey(image.uint8s.size() / 3);
  for (size_t i = 0; i < grey.size(); ++i) {
    const uint8_t* const pixel = &image.uint8s[3 * i];
    const float red = 0.2989f * static_cast<float>(pixel[0]);
    const float red_and_green = Added(red, 0.587f, pixel[1]);
    grey[i] = static_cast<uint8_t>(Added(red_and_green, 0.114f, pixel[2]));
  }
  return grey;
}

void Sharpen(float part, Value& image) {
  const auto height = static_cast<size_t>(image.height());
  const auto width = static_cast<size_t>(image.width());
  const auto channels = static_cast<size_t>(image.channels());
  if (height <= 2 || width <= 2) return;
  const std::vector<uint8_t> pixels = image.uint8s;
  const size_t line = width * channels;
  // For sharpness alone, torchvision computes x + (1 - f) * (smooth - x) instead of
  // f * x + (1 - f) * smooth. In exact arithmetic the two would be equal.
  const auto of_difference = static_cast<float>(1.0 - (1.0 + part));
  for (size_t row = 1; row + 1 < height && !InterruptRequested(); ++row) {
    for (size_t i = row * line + channels; i < (row + 1) * line - channels; ++i) {
      int sum = 4 * pixels[i];
      for (const size_t middle : {i - line, i, i + line}) {
        sum += pixels[middle - channels] + pixels[middle] + pixels[middle + channels];
      }
      const int smooth = (2 * sum + 13) / 26;  // round(sum / 13); there are no ties.
      const auto difference = static_cast<float>(smooth - pixels[i]);
      image.uint8s[i] = CutOff(Added(pixels[i], of_difference, difference));
    }
  }
}

using Frequencies = std::array<int64_t, 256>;  // How often each level occurs.
using Table = std::array<uint8_t, 256>;

// Makes a table for each channel, by `table_of` from the frequencies of the channel's values. Then
// replaces each value of the channel by the value's entry in the table.
template <typename TableOf>
void ReplaceByChannel(const TableOf& table_of, Value& image) {
  const auto channels = static_cast<size_t>(image.channels());
  for (size_t c = 0; c < channels; ++c) {
    Frequencies frequencies = {};
    for (size_t i = c; i < image.uint8s.size(); i += channels) ++frequencies[image.uint8s[i]];
    const Table table = table_of(frequencies);
    for (size_t i = c; i < image.uint8s.size(); i += channels) {
      image.uint8s[i] = table[image.uint8s[i]];
    }
  }
}

bool IsThere(int64_t frequency) { return frequency > 0; }

Table StretchingTable(const Frequencies& frequencies) {
  const auto least = std::find_if(frequencies.begin(), frequencies.end(), IsThere);
  const auto most = std::find_if(frequencies.rbegin(), frequencies.rend(), IsThere);
  const auto low = static_cast<float>(least - frequencies.begin());
  const auto high = static_cast<float>(frequencies.rend() - most - 1);
  Table table;
  std::iota(table.begin(), table.end(), uint8_t{0});
  if (low == high) return table;
  const float scale = (high - low) * static_cast<float>(1.0 / 255);
  for (uint8_t& x : table) x = CutOff((static_cast<float>(x) - low) / scale);
  return table;
}

Table EqualizingTable(const Frequencies& frequencies) {
  const auto most = std::find_if(frequencies.rbegin(), frequencies.rend(), IsThere);
  const int64_t pixels = std::accumulate(frequencies.begin(), frequencies.end(), int64_t{0});
  const int64_t step = (pixels - *most) / 255;
  Table table;
  std::iota(table.begin(), table.end(), uint8_t{0});
  if (step == 0) return table;
  int64_t below = 0;  // How many pixels have a level below `level`.
  for (size_t level = 0; level < table.size(); ++level) {
    table[level] =
        level == 0 ? 0 : static_cast<uint8_t>(std::min<int64_t>((below + step / 2) / step, 255));
    below += frequencies[level];
  }
  return table;
}

class TrivialAugment final : public Operation {
 public:
  explicit TrivialAugment(Draws draws) : draws_(draws) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    if (input.element == ElementType::kUint8) return input;
    return absl::InvalidArgumentError(
        "needs uint8 images, but gets float32; put round_to_uint8 before it");
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const override {
    CounterRng rng = draws_.Rng(example);
    const auto change = static_cast<Change>(rng.UniformInt(0, kChanges));
    const auto strength = static_cast<int>(rng.UniformInt(0, kStrengths));
    const bool negative = rng.UniformInt(0, 2) == 1;
    const float sign = negative ? -1 : 1;
    const float part = sign * Spaced(0, 0.99f, kStrengths, strength);
    const double pixels = std::trunc(sign * Spaced(0, 32, kStrengths, strength));
    switch (change) {
      case Change::kIdentity:
        break;
      // In both shears the top left corner stays where it is.
      case Change::kShearX: {
        const double shear = Sheared(part, kShearXUnits[strength]);
        return Move(input, {.xy = shear, .x0 = shear * 0.5 * static_cast<double>(input.height())});
      }
      case Change::kShearY: {
        const double shear = Sheared(part, kShearYUnits[strength]);
        const double x = -0.5 * static_cast<double>(input.width());
        const double y = -0.5 * static_cast<double>(input.height());
        return Move(input,
                    {.yx = shear, .y0 = (y - shear * x) - y});  // Rounded as torchvision does.
      }
      case Change::kTranslateX:
        return Move(input, {.x0 = -pixels});
      case Change::kTranslateY:
        return Move(input, {.y0 = -pixels});
      case Change::kRotate:
        return Move(input, Rotation(strength, negative));
      case Change::kBrightness:
        Mix(
            part, [](size_t) { return 0.0f; }, input);
        break;
      case Change::kColor: {
        if (input.channels() == 1) break;
        const std::vector<uint8_t> grey = GreyOf(input);
        Mix(
            part, [&grey](size_t i) -> float { return grey[i / 3]; }, input);
        break;
      }
      case Change::kContrast: {
        const std::vector<uint8_t> grey = GreyOf(input);
        const auto sum = std::accumulate(grey.begin(), grey.end(), int64_t{0});
        const float mean = static_cast<float>(sum) / static_cast<float>(grey.size());
        Mix(
            part, [mean](size_t) { return mean; }, input);
        break;
      }
      case Change::kSharpness:
        Sharpen(part, input);
        break;
      case Change::kPosterize: {
        const int dropped = (2 * strength + 5) / 10;  // round(strength / 5); there are no ties.
        for (uint8_t& x : input.uint8s) x = static_cast<uint8_t>(x >> dropped << dropped);
        break;
      }
      case Change::kSolarize: {
        const auto least = static_cast<float>(255.0 * Spaced(1, 0, kStrengths, strength));
        for (uint8_t& x : input.uint8s) {
          if (static_cast<float>(x) >= least) x = static_cast<uint8_t>(255 - x);
        }
        break;
      }
      case Change::kAutoContrast:
        ReplaceByChannel(StretchingTable, input);
        break;
      case Change::kEqualize:
        ReplaceByChannel(EqualizingTable, input);
        break;
    }
    return input;
  }

 private:
  Draws draws_;
};

}  // namespace

OperationRow TrivialAugmentRow() {
  return {
      .kind = v1::Transform::kTrivialAugment,
      .guide =
          {
              .summary = "Makes one of 14 changes to an image, with a random strength.",
              .example = "trivial_augment {}",
              .torchvision = "v2.TrivialAugmentWide",
              .dali = "auto_aug.trivial_augment_wide",
          },
      .draws = 25,
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        return std::make_unique<TrivialAugment>(arguments.draws);
      },
  };
}

}  // namespace systole
