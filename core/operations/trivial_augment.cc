// torchvision's TrivialAugmentWide: the message's comment in feed.proto has the list.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "core/interrupt/interrupt.h"
#include "core/numeric/math.h"
#include "core/operations/operation_rows.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// The order of torchvision's table; draws are numbers in it.
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
constexpr int kStrongest = kStrengths - 1;

// most * strength / 30 as torch.linspace computes it: from either end to the middle, with a step of
// float32 and one rounding for each value. In double precision nothing else is rounded.
float Spaced(float most, int strength) {
  const double step = most / static_cast<float>(kStrongest);
  return static_cast<float>(strength < kStrengths / 2 ? step * strength
                                                      : most - step * (kStrongest - strength));
}

// Where the centre of a pixel comes from: x' = xx * x + xy * y + x0, y' = yx * x + yy * y + y0.
struct InverseMap {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;
};

Value Move(const Value& image, const InverseMap& map) {
  Value moved = Value::Create(ElementType::kUint8, image.type.shape);
  const int64_t height = image.height(), width = image.width(), channels = image.channels();
  for (int64_t row = 0; row < height && !InterruptRequested(); ++row) {
    for (int64_t column = 0; column < width; ++column) {
      const double x = static_cast<double>(column) + 0.5;
      const double y = static_cast<double>(row) + 0.5;
      const double from_x = std::floor(map.xx * x + map.xy * y + map.x0);
      const double from_y = std::floor(map.yx * x + map.yy * y + map.y0);
      if (!(from_x >= 0 && from_x < static_cast<double>(width) && from_y >= 0 &&
            from_y < static_cast<double>(height))) {
        continue;
      }
      const int64_t from = static_cast<int64_t>(from_y) * width + static_cast<int64_t>(from_x);
      std::copy_n(&image.uint8s[static_cast<size_t>(from * channels)], channels,
                  &moved.uint8s[static_cast<size_t>((row * width + column) * channels)]);
    }
  }
  return moved;
}

InverseMap Rotation(int strength, bool negative, const Value& image) {
  const float half_turns = static_cast<float>(strength) * 0.025f;  // 4.5 / 180
  const double cosine = CosPi(half_turns);
  const double sine = (negative ? -1.0 : 1.0) * CosPi(0.5f - half_turns);
  const double x = static_cast<double>(image.width()) / 2;
  const double y = static_cast<double>(image.height()) / 2;
  return {.xx = cosine,
          .xy = -sine,
          .x0 = x - cosine * x + sine * y,
          .yx = sine,
          .yy = cosine,
          .y0 = y - sine * x - cosine * y};
}

uint8_t CutOff(float value) { return static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f)); }

// Mixes `image` with other(i) for each of its values.
template <typename Other>
void Mix(float part, const Other& other, Value& image) {
  const double factor = 1.0 + part;
  const auto of_image = static_cast<float>(factor);
  const auto of_other = static_cast<float>(1.0 - factor);
  InParts(image.uint8s.size(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      image.uint8s[i] =
          CutOff(of_image * static_cast<float>(image.uint8s[i]) + of_other * other(i));
    }
  });
}

// One value for each pixel.
std::vector<uint8_t> GreyOf(const Value& image) {
  if (image.channels() == 1) return image.uint8s;
  std::vector<uint8_t> grey(image.uint8s.size() / 3);
  for (size_t i = 0; i < grey.size(); ++i) {
    const uint8_t* const pixel = &image.uint8s[3 * i];
    grey[i] = static_cast<uint8_t>(0.2989f * static_cast<float>(pixel[0]) +
                                   0.587f * static_cast<float>(pixel[1]) +
                                   0.114f * static_cast<float>(pixel[2]));
  }
  return grey;
}

void Sharpen(float part, Value& image) {
  const auto height = static_cast<size_t>(image.height());
  const auto width = static_cast<size_t>(image.width());
  const auto channels = static_cast<size_t>(image.channels());
  if (height <= 2 || width <= 2) return;
  const std::vector<uint8_t> pixels = image.uint8s;
  const auto smooth = [&](size_t i) -> float {
    const size_t column = i / channels % width;
    const size_t row = i / channels / width;
    if (row == 0 || row + 1 == height || column == 0 || column + 1 == width) return pixels[i];
    int sum = 4 * pixels[i];
    const size_t line = width * channels;
    for (const size_t middle : {i - line, i, i + line}) {
      sum += pixels[middle - channels] + pixels[middle] + pixels[middle + channels];
    }
    const int rounded = (2 * sum + 13) / 26;  // 13 is odd, so there are no ties.
    return static_cast<float>(rounded);
  };
  Mix(part, smooth, image);
}

using Frequencies = std::array<int64_t, 256>;  // Of each level.
using Table = std::array<uint8_t, 256>;

// Replaces the values of each channel by a table that `table_of` makes from their frequencies.
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
  const float scale = 1.0f / (high - low) * 255.0f;  // As torch divides a number by a tensor.
  for (uint8_t& x : table) x = CutOff((static_cast<float>(x) - low) * scale);
  return table;
}

Table EqualizingTable(const Frequencies& frequencies) {
  const auto most = std::find_if(frequencies.rbegin(), frequencies.rend(), IsThere);
  const int64_t pixels = std::accumulate(frequencies.begin(), frequencies.end(), int64_t{0});
  const int64_t step = (pixels - *most) / 255;
  Table table;
  std::iota(table.begin(), table.end(), uint8_t{0});
  if (step == 0) return table;
  int64_t below = 0;  // Pixels of lower levels.
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
        "wants uint8 images, but gets float32; put round_to_uint8 before it");
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const override {
    CounterRng rng = draws_.Rng(example);
    const auto change = static_cast<Change>(rng.UniformInt(0, kChanges));
    const auto strength = static_cast<int>(rng.UniformInt(0, kStrengths));
    const bool negative = rng.UniformInt(0, 2) == 1;
    const float sign = negative ? -1 : 1;
    const float part = sign * Spaced(0.99f, strength);
    const double pixels = std::trunc(sign * Spaced(32, strength));
    switch (change) {
      case Change::kIdentity:
        break;
      case Change::kShearX:
        return Move(input, {.xy = part});
      case Change::kShearY:
        return Move(input, {.yx = part});
      case Change::kTranslateX:
        return Move(input, {.x0 = -pixels});
      case Change::kTranslateY:
        return Move(input, {.y0 = -pixels});
      case Change::kRotate:
        return Move(input, Rotation(strength, negative, input));
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
      case Change::kSolarize:
        for (uint8_t& x : input.uint8s) {
          if (2 * x >= 510 - 17 * strength) x = static_cast<uint8_t>(255 - x);
        }
        break;
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
              .summary = "One of 14 changes of an image, of a random strength.",
              .example = "trivial_augment {}",
              .torchvision = "TrivialAugmentWide",
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
