// Computes gain * x ^ gamma, as tf.image.adjust_gamma does.
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/numeric/math.h"
#include "core/operations/ops/drawn_number.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/unit_values.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class Gamma final : public Operation {
 public:
  Gamma(DrawnNumber gamma, float gain) : gamma_(gamma), gain_(gain) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantNumbers(input));
    return input;
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const override {
    const float gamma = gamma_.Of(example);
    ApplyToEach([gamma, gain = gain_](float x) { return gain * Pow(x, gamma); }, input);
    return input;
  }

  ByRow by_row() const override { return ByRow::kYes; }
  RowChange ChangeOf(const Value&, const ExampleKey& example) const override {
    return [gamma = gamma_.Of(example), gain = gain_](absl::Span<float> rows) {
      for (float& x : rows) x = gain * Pow(x, gamma);
    };
  }

  int RulesByValue() const override { return gamma_.is_fixed() ? 1 : 0; }

 private:
  DrawnNumber gamma_;
  float gain_;
};

}  // namespace

OperationRow GammaRow() {
  return {
      .kind = v1::Transform::kGamma,
      .guide =
          {
              .summary = "Raises values to the power of gamma, and multiplies by gain.",
              .example = "gamma { gamma_min: 0.8 gamma_max: 1.2 }",
              .tensorflow = "tf.image.adjust_gamma",
              .torchvision = "functional.adjust_gamma",
              .parity = "within 4e-7 of the value; uint8 within 1 level",
          },
      .draws = 23,
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::Gamma& gamma = arguments.transform.gamma();
        if (gamma.gamma_max() == 0 && gamma.gamma_min() == 0) {
          return absl::InvalidArgumentError("makes all values equal; set gamma_min and gamma_max");
        }
        if (!std::isfinite(gamma.gain())) {
          return absl::InvalidArgumentError(
              absl::StrCat("gain is ", gamma.gain(), ", want a finite number"));
        }
        SYSTOLE_ASSIGN_OR_RETURN(
            const DrawnNumber drawn,
            DrawnNumber::Create(
                arguments.draws,
                {.name = "gamma", .min = gamma.gamma_min(), .max = gamma.gamma_max(), .least = 0}));
        return std::make_unique<Gamma>(drawn, gamma.gain());
      },
      .write_defaults =
          [](v1::Transform& transform) {
            v1::Gamma& gamma = *transform.mutable_gamma();
            if (gamma.gain() == 0) gamma.set_gain(1);
          },
  };
}

}  // namespace systole
