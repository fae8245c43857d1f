// Turns the hue of HSV by a part of the circle. The result equals that of tf.image.adjust_hue to
// the bit.
#include <memory>

#include "absl/types/span.h"
#include "core/numeric/colour.h"
#include "core/operations/ops/drawn_number.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/unit_values.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// A colour: its hue in sixths of the circle, and the values of its smallest and largest channel.
struct HueAndRange {
  float sixths = 0;
  float min = 0;
  float max = 0;
};

HueAndRange HueOf(const Rgb& pixel) {
  const auto [r, g, b] = pixel;
  // The order of the channels decides the sixth. If two channels are equal, or one is NaN, the
  // result is that of TensorFlow's comparisons.
  int sixth = 0;
  float min = 0, middle = 0, max = 0;
  if (r < g) {
    if (b < r) {
      sixth = 1, max = g, middle = r, min = b;
    } else if (b > g) {
      sixth = 3, max = b, middle = g, min = r;
    } else {
      sixth = 2, max = g, middle = b, min = r;
    }
  } else {
    if (b < g) {
      sixth = 0, max = r, middle = g, min = b;
    } else if (b > r) {
      sixth = 4, max = b, middle = r, min = g;
    } else {
      sixth = 5, max = r, middle = b, min = g;
    }
  }
  if (max == min) return {.sixths = 0, .min = min, .max = max};
  // The middle channel rises in even sixths and falls in odd ones.
  const float ratio = (middle - min) / (max - min);
  return {.sixths = static_cast<float>(sixth) + (sixth % 2 == 0 ? ratio : 1 - ratio),
          .min = min,
          .max = max};
}

Rgb RgbOf(const HueAndRange& colour) {
  const float sixths = colour.sixths;  // In [0, 6), or NaN, which is in no sixth.
  const int sixth = sixths >= 0 && sixths < 6 ? static_cast<int>(sixths) : -2;
  float ratio = sixths - static_cast<float>(sixth);
  if (sixth % 2 != 0) ratio = 1 - ratio;
  const float min = colour.min;
  const float max = colour.max;
  const float middle = min + ratio * (max - min);
  switch (sixth) {
    case 0:
      return {max, middle, min};
    case 1:
      return {middle, max, min};
    case 2:
      return {min, max, middle};
    case 3:
      return {min, middle, max};
    case 4:
      return {middle, min, max};
    default:
      return {max, min, middle};
  }
}

class Hue final : public Operation {
 public:
  explicit Hue(DrawnNumber delta) : delta_(delta) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantColour(input));
    return input;
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const override {
    const auto turned = [sixths = delta_.Of(example) * 6](const Rgb& pixel) {
      HueAndRange colour = HueOf(pixel);
      colour.sixths += sixths;
      while (colour.sixths < 0) colour.sixths += 6;
      while (colour.sixths >= 6) colour.sixths -= 6;
      return RgbOf(colour);
    };
    ApplyToPixels(turned, input);
    return input;
  }

  // Feeds call Run for uint8 images, and ChangeOf for float32 images.
  absl::StatusOr<Value> Run(Value input, const ExampleKey& example) const override {
    const float delta = delta_.Of(example);
    AdjustHue(delta, absl::MakeSpan(input.uint8s));
    return input;
  }

  ByRow by_row() const override { return ByRow::kYes; }
  RowChange ChangeOf(const Value&, const ExampleKey& example) const override {
    return [delta = delta_.Of(example)](absl::Span<float> rows) { AdjustHue(delta, rows); };
  }

 private:
  DrawnNumber delta_;
};

}  // namespace

OperationRow HueRow() {
  return {
      .kind = v1::Transform::kHue,
      .guide =
          {
              .summary = "Turns the hue by a part of the circle.",
              .example = "hue { delta_min: -0.1 delta_max: 0.1 }",
              .tensorflow = "tf.image.adjust_hue, tf.image.random_hue",
              .torchvision = "ColorJitter",
              .dali = "fn.hue",
              .parity = "exact for the same number; with tf_seed it draws as "
                        "tf.image.stateless_random_hue",
          },
      .draws = 22,
      .tensorflow_draws = true,
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::Hue& hue = arguments.transform.hue();
        const float min = hue.delta_min();
        const float max = hue.delta_max();
        if (min == 0 && max == 0) {
          return absl::InvalidArgumentError("does not change the hue; set delta_min or delta_max");
        }
        SYSTOLE_ASSIGN_OR_RETURN(
            const DrawnNumber delta,
            DrawnNumber::Create(arguments.draws,
                                {.name = "delta", .min = min, .max = max, .least = -1, .most = 1}));
        return std::make_unique<Hue>(delta);
      },
  };
}

}  // namespace systole
