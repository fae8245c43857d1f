// Multiplies the saturation of HSV by a factor. The results are those of
// tf.image.adjust_saturation, to the bit.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "absl/types/span.h"
#include "core/numeric/colour.h"
#include "core/operations/ops/drawn_number.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/unit_values.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

struct Hsv {
  float hue = 0;  // A fraction of the circle.
  float saturation = 0;
  float value = 0;
};

// Uses std::max and std::min in the order of TensorFlow's kernel, because NaN makes the order
// matter.
Hsv HsvOf(const Rgb& pixel) {
  const auto [r, g, b] = pixel;
  Hsv hsv = {.value = std::max(r, std::max(g, b))};
  const float range = hsv.value - std::min(r, std::min(g, b));
  if (hsv.value > 0) hsv.saturation = range / hsv.value;
  // TensorFlow treats subnormal numbers as 0. This also keeps the division below finite.
  if (range < std::numeric_limits<float>::min()) return hsv;
  const float norm = 1.0f / (6.0f * range);
  // 2.0 / 6.0 and 4.0 / 6.0 are doubles in TensorFlow, too.
  if (r == hsv.value) {
    hsv.hue = norm * (g - b);
  } else if (g == hsv.value) {
    hsv.hue = static_cast<float>(norm * (b - r) + 2.0 / 6.0);
  } else {
    hsv.hue = static_cast<float>(norm * (r - g) + 4.0 / 6.0);
  }
  if (hsv.hue < 0) hsv.hue += 1;
  return hsv;
}

Rgb RgbOf(const Hsv& hsv) {
  const float c = hsv.saturation * hsv.value;
  const float m = hsv.value - c;
  const float sixths = hsv.hue * 6;  // 0 to 6, or NaN.
  float x = sixths;
  while (x <= 0) x += 2.0f;
  while (x >= 2) x -= 2.0f;
  x = c * (1 - std::abs(x - 1));
  Rgb pixel = {0, 0, 0};
  // A hue that was rounded up to the whole circle belongs to no sixth. TensorFlow makes such a
  // pixel black before it adds m.
  switch (sixths >= 0 ? static_cast<int>(sixths) : -1) {
    case 0:
      pixel = {c, x, 0};
      break;
    case 1:
      pixel = {x, c, 0};
      break;
    case 2:
      pixel = {0, c, x};
      break;
    case 3:
      pixel = {0, x, c};
      break;
    case 4:
      pixel = {x, 0, c};
      break;
    case 5:
      pixel = {c, 0, x};
      break;
    default:
      break;
  }
  for (float& channel : pixel) channel += m;
  return pixel;
}

class Saturation final : public Operation {
 public:
  explicit Saturation(DrawnNumber factor) : factor_(factor) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantColour(input));
    return input;
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const override {
    const auto adjusted = [factor = factor_.Of(example)](const Rgb& pixel) {
      Hsv hsv = HsvOf(pixel);
      hsv.saturation = std::min(1.0f, std::max(0.0f, hsv.saturation * factor));
      return RgbOf(hsv);
    };
    ApplyToPixels(adjusted, input);
    return input;
  }

  // Feeds call Run for uint8 images, and ChangeOf for float32 images.
  absl::StatusOr<Value> Run(Value input, const ExampleKey& example) const override {
    const float factor = factor_.Of(example);
    AdjustSaturation(factor, absl::MakeSpan(input.uint8s));
    return input;
  }

  ByRow by_row() const override { return ByRow::kYes; }
  RowChange ChangeOf(const Value&, const ExampleKey& example) const override {
    return
        [factor = factor_.Of(example)](absl::Span<float> rows) { AdjustSaturation(factor, rows); };
  }

 private:
  DrawnNumber factor_;
};

}  // namespace

OperationRow SaturationRow() {
  return {
      .kind = v1::Transform::kSaturation,
      .guide =
          {
              .summary = "Makes colours stronger or weaker.",
              .example = "saturation { factor_min: 0.6 factor_max: 1.4 }",
              .tensorflow = "tf.image.adjust_saturation, tf.image.random_saturation",
              .torchvision = "ColorJitter",
              .dali = "fn.saturation",
              .parity = "exact for the same factor; with tf_seed it draws as "
                        "tf.image.stateless_random_saturation",
          },
      .draws = 21,
      .tensorflow_draws = true,
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::Saturation& saturation = arguments.transform.saturation();
        const float min = saturation.factor_min();
        const float max = saturation.factor_max();
        if (min == 0 && max == 0) {
          return absl::InvalidArgumentError(
              "leaves no colour; set factor_min and factor_max, or use grayscale");
        }
        SYSTOLE_ASSIGN_OR_RETURN(
            const DrawnNumber factor,
            DrawnNumber::Create(arguments.draws,
                                {.name = "factor", .min = min, .max = max, .least = 0}));
        return std::make_unique<Saturation>(factor);
      },
  };
}

}  // namespace systole
