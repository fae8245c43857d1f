// Adds the same number to every value, as tf.image.adjust_brightness does.
#include <memory>

#include "absl/types/span.h"
#include "core/operations/ops/drawn_number.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/unit_values.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class Brightness final : public Operation {
 public:
  explicit Brightness(DrawnNumber delta) : delta_(delta) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantNumbers(input));
    return input;
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const override {
    const float delta = delta_.Of(example);
    ApplyToEach([delta](float x) { return x + delta; }, input);
    return input;
  }

  ByRow by_row() const override { return ByRow::kYes; }
  RowChange ChangeOf(const Value&, const ExampleKey& example) const override {
    return [delta = delta_.Of(example)](absl::Span<float> rows) {
      for (float& x : rows) x += delta;
    };
  }

  int RulesByValue() const override { return delta_.is_fixed() ? 1 : 0; }

 private:
  DrawnNumber delta_;
};

}  // namespace

OperationRow BrightnessRow() {
  return {
      .kind = v1::Transform::kBrightness,
      .guide =
          {
              .summary = "Adds the same number to all values.",
              .example = "brightness { delta_min: -0.1 delta_max: 0.1 }",
              .tensorflow = "tf.image.random_brightness",
              .torchvision = "ColorJitter",
              .dali = "fn.brightness",
              .parity = "exact for the same number; with tf_seed it draws as "
                        "tf.image.stateless_random_brightness",
          },
      .draws = 4,
      .tensorflow_draws = true,
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::Brightness& brightness = arguments.transform.brightness();
        const float min = brightness.delta_min();
        const float max = brightness.delta_max();
        if (min == 0 && max == 0) {
          return absl::InvalidArgumentError(
              "does not change the brightness; set delta_min or delta_max");
        }
        SYSTOLE_ASSIGN_OR_RETURN(
            const DrawnNumber delta,
            DrawnNumber::Create(arguments.draws, {.name = "delta", .min = min, .max = max}));
        return std::make_unique<Brightness>(delta);
      },
  };
}

}  // namespace systole
