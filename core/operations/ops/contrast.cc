// Computes (x - mean) * factor + mean in each channel, bit-equal to tf.image.adjust_contrast.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/operations/ops/drawn_number.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/unit_values.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

float Unit(float value) { return value; }
float Unit(uint8_t value) { return Uint8ToUnit(value); }

// The mean of each channel. The values are summed as in TensorFlow's kernel: the second half of the
// pixels is added to the first half, and this is repeated until one pixel is left.
template <typename T>
std::vector<float> MeansOf(const T* values, size_t pixels, size_t channels) {
  // If the number of pixels is odd, nothing is added to the pixel in the middle.
  size_t right = pixels / 2;
  size_t left = pixels - right;
  std::vector<float> sums(left * channels);
  const T* const second = values + left * channels;
  for (size_t i = 0; i < right * channels; ++i) sums[i] = Unit(values[i]) + Unit(second[i]);
  for (size_t i = right * channels; i < sums.size(); ++i) sums[i] = Unit(values[i]);
  while (left > 1) {
    right = left / 2;
    left -= right;
    for (size_t i = 0; i < right * channels; ++i) sums[i] += sums[left * channels + i];
  }
  sums.resize(channels);
  const float scale = 1.0f / static_cast<float>(pixels);
  for (float& sum : sums) sum *= scale;
  return sums;
}

// Computes the means of MeansOf() faster. A round adds the second half of the values to the first
// half. After n rounds, each value is the sum of at most 2^n values of the image. So a piece of the
// result of several rounds can be made directly from the image, and the results of the large first
// rounds are never written to memory.
template <typename T>
class FastMeans {
 public:
  FastMeans(const T* values, size_t pixels, size_t channels)
      : values_(values), pixels_(pixels), channels_(channels) {
    for (size_t left = pixels; left > 1; left -= left / 2) {
      rounds_.push_back({.left = (left - left / 2) * channels, .right = left / 2 * channels});
    }
  }

  std::vector<float> Make() const {
    // The first result that fits in one piece is made from the image. The rounds after it work on
    // this piece.
    size_t count = pixels_ * channels_;
    size_t round = 0;
    for (; count > kPiece; ++round) count = rounds_[round].left;
    std::array<float, kPiece> sums;
    Write(round, 0, count, sums.data());
    for (; round < rounds_.size(); ++round) {
      const auto [left, right] = rounds_[round];
      for (size_t i = 0; i < right; ++i) sums[i] += sums[left + i];
    }
    const float scale = 1.0f / static_cast<float>(pixels_);
    std::vector<float> means(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(channels_));
    for (float& mean : means) mean *= scale;
    return means;
  }

 private:
  static constexpr size_t kPiece = 1024;

  // A round begins with left + right values. It adds the last `right` values to the first `right`
  // values, so that `left` values remain.
  struct Round {
    size_t left = 0;
    size_t right = 0;
  };

  // Writes the values begin .. begin + count - 1 of the result of the first `rounds` rounds.
  // REQUIRES: count <= kPiece.
  void Write(size_t rounds, size_t begin, size_t count, float* out) const {
    if (rounds == 0) {
      for (size_t i = 0; i < count; ++i) out[i] = Unit(values_[begin + i]);
      return;
    }
    Write(rounds - 1, begin, count, out);
    const auto [left, right] = rounds_[rounds - 1];
    if (begin >= right) return;
    const size_t pairs = std::min(count, right - begin);
    std::array<float, kPiece> others;
    Write(rounds - 1, left + begin, pairs, others.data());
    for (size_t i = 0; i < pairs; ++i) out[i] += others[i];
  }

  const T* values_;
  size_t pixels_;
  size_t channels_;
  std::vector<Round> rounds_;
};

template <typename T>
ChannelPattern FastMeansOf(const std::vector<T>& values, const Value& image) {
  const auto channels = static_cast<size_t>(image.channels());
  return PatternOf(FastMeans<T>(values.data(), values.size() / channels, channels).Make());
}

// TensorFlow's order: the mean plus the scaled difference.
float Adjusted(float x, float mean, float factor) { return mean + (x - mean) * factor; }

void Adjust(const ChannelPattern& by_channel, float factor, absl::Span<float> values) {
  // The compiler sees that a local copy does not overlap `values`.
  const ChannelPattern means = by_channel;
  ApplyByPattern([&](float x, size_t j) { return Adjusted(x, means[j], factor); }, values);
}

class Contrast final : public Operation {
 public:
  explicit Contrast(DrawnNumber factor) : factor_(factor) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    return input;
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const override {
    const float factor = factor_.Of(example);
    const auto channels = static_cast<size_t>(input.channels());
    const auto pixels = static_cast<size_t>(input.height() * input.width());
    if (input.type.element == ElementType::kFloat32) {
      Adjust(PatternOf(MeansOf(input.floats.data(), pixels, channels)), factor,
             absl::MakeSpan(input.floats));
      return input;
    }
    const absl::Span<uint8_t> values = absl::MakeSpan(input.uint8s);
    const std::vector<float> means = MeansOf(input.uint8s.data(), pixels, channels);
    for (size_t c = 0; c < channels; ++c) {
      const auto table = TableOf([&](float x) { return Adjusted(x, means[c], factor); });
      for (size_t i = c; i < values.size(); i += channels) values[i] = table[values[i]];
    }
    return input;
  }

  // Feeds call Run for uint8 images, and ChangeOf for float32 images.
  absl::StatusOr<Value> Run(Value input, const ExampleKey& example) const override {
    const float factor = factor_.Of(example);
    const auto channels = static_cast<size_t>(input.channels());
    const ChannelPattern means = FastMeansOf(input.uint8s, input);
    std::array<std::array<uint8_t, 256>, 3> tables;
    for (size_t c = 0; c < channels; ++c) {
      tables[c] = TableOf([&](float x) { return Adjusted(x, means[c], factor); });
    }
    for (size_t i = 0; i < input.uint8s.size(); i += channels) {
      uint8_t* const pixel = &input.uint8s[i];
      for (size_t c = 0; c < channels; ++c) pixel[c] = tables[c][pixel[c]];
    }
    return input;
  }

  ByRow by_row() const override { return ByRow::kAfterReadingAll; }
  RowChange ChangeOf(const Value& image, const ExampleKey& example) const override {
    return [means = FastMeansOf(image.floats, image),
            factor = factor_.Of(example)](absl::Span<float> rows) { Adjust(means, factor, rows); };
  }

  // For the sums of MeansOf: half of the values, and room for one more pixel, because the number of
  // pixels may be odd.
  int64_t ScratchBytes(int64_t elements) const override {
    return (elements / 2 + 3) * int64_t{sizeof(float)};
  }

 private:
  DrawnNumber factor_;
};

}  // namespace

OperationRow ContrastRow() {
  return {
      .kind = v1::Transform::kContrast,
      .guide =
          {
              .summary = "Moves values away from the mean of their channel, or towards it.",
              .example = "contrast { factor_min: 0.6 factor_max: 1.4 }",
              .tensorflow = "tf.image.adjust_contrast, tf.image.random_contrast",
              .torchvision = "ColorJitter",
              .dali = "fn.contrast",
              .parity = "exact for the same factor; with tf_seed it draws as "
                        "tf.image.stateless_random_contrast",
          },
      .draws = 20,
      .tensorflow_draws = true,
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::Contrast& contrast = arguments.transform.contrast();
        const float min = contrast.factor_min();
        const float max = contrast.factor_max();
        if (min == 0 && max == 0) {
          return absl::InvalidArgumentError(
              "makes all values equal to the mean; set factor_min and factor_max");
        }
        SYSTOLE_ASSIGN_OR_RETURN(
            const DrawnNumber factor,
            DrawnNumber::Create(arguments.draws, {.name = "factor", .min = min, .max = max}));
        return std::make_unique<Contrast>(factor);
      },
  };
}

}  // namespace systole
