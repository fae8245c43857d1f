// Computes (x - mean) * factor + mean in each channel, with the bits of tf.image.adjust_contrast.
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

// The mean of each channel, summed as TensorFlow's kernel does: the second half of the pixels is
// added to the first, over and over, until one pixel is left. `at(i)` is value i of the image.
template <typename At>
std::vector<float> MeansOf(const At& at, size_t pixels, size_t channels) {
  // If the number of pixels is odd, the pixel in the middle has no partner.
  size_t right = pixels / 2;
  size_t left = pixels - right;
  std::vector<float> sums(left * channels);
  for (size_t i = 0; i < right * channels; ++i) sums[i] = at(i) + at(left * channels + i);
  for (size_t i = right * channels; i < sums.size(); ++i) sums[i] = at(i);
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
    // TensorFlow's order: the mean plus the scaled difference.
    const auto adjusted = [factor](float x, float mean) { return mean + (x - mean) * factor; };
    if (input.type.element == ElementType::kFloat32) {
      std::vector<float>& values = input.floats;
      const std::vector<float> means =
          MeansOf([&values](size_t i) { return values[i]; }, pixels, channels);
      // The inner loop has a fixed length, so that compilers vectorise it.
      std::array<float, 48> pattern;
      for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = means[i % channels];
      size_t i = 0;
      for (; i + pattern.size() <= values.size(); i += pattern.size()) {
        for (size_t j = 0; j < pattern.size(); ++j) {
          values[i + j] = adjusted(values[i + j], pattern[j]);
        }
      }
      for (; i < values.size(); ++i) values[i] = adjusted(values[i], pattern[i % channels]);
      return input;
    }
    const absl::Span<uint8_t> values = absl::MakeSpan(input.uint8s);
    const std::vector<float> means =
        MeansOf([&values](size_t i) { return Uint8ToUnit(values[i]); }, pixels, channels);
    for (size_t c = 0; c < channels; ++c) {
      const auto table = TableOf([&](float x) { return adjusted(x, means[c]); });
      for (size_t i = c; i < values.size(); i += channels) values[i] = table[values[i]];
    }
    return input;
  }

  // The sums, with room for one pixel more if the number of pixels is odd.
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
              "leaves nothing but the mean; set factor_min and factor_max");
        }
        SYSTOLE_ASSIGN_OR_RETURN(
            const DrawnNumber factor,
            DrawnNumber::Create(arguments.draws, {.name = "factor", .min = min, .max = max}));
        return std::make_unique<Contrast>(factor);
      },
  };
}

}  // namespace systole
