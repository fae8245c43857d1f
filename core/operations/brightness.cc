// The same number added to every value, as tf.image.adjust_brightness adds it.
#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/numeric/normalise.h"
#include "core/operations/operation_rows.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class Brightness final : public Operation {
 public:
  Brightness(Draws draws, float min, float max) : draws_(draws), min_(min), max_(max) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantNumbers(input));
    return input;
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const override {
    CounterRng rng = draws_.Rng(example);
    const float delta = min_ + rng.UniformFloat() * (max_ - min_);
    for (float& value : input.floats) value += delta;
    for (uint8_t& value : input.uint8s) {
      // TensorFlow's convert_image_dtype there and back: it multiplies by 255.5 and cuts off.
      const float unit = std::clamp(static_cast<float>(value) * kUint8ToUnit + delta, 0.0f, 1.0f);
      value = static_cast<uint8_t>(unit * 255.5f);
    }
    return input;
  }

 private:
  Draws draws_;
  float min_;
  float max_;
};

}  // namespace

OperationRow BrightnessRow() {
  return {
      .kind = v1::Transform::kBrightness,
      .guide =
          {
              .summary = "The same number added to all values.",
              .example = "brightness { delta_min: -0.1 delta_max: 0.1 }",
              .tensorflow = "tf.image.random_brightness",
              .torchvision = "ColorJitter",
              .dali = "fn.brightness",
              .parity = "exact for the same number; the draws are our own",
          },
      .draws = 4,
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::Brightness& brightness = arguments.transform.brightness();
        const float min = brightness.delta_min();
        const float max = brightness.delta_max();
        if (min == 0 && max == 0) {
          return absl::InvalidArgumentError("adds nothing; set delta_min and delta_max");
        }
        if (!(min <= max) || !std::isfinite(max - min)) {
          return absl::InvalidArgumentError(absl::StrCat("has delta_min: ", min,
                                                         " and delta_max: ", max,
                                                         ", want finite numbers, the smaller "
                                                         "one first"));
        }
        return std::make_unique<Brightness>(arguments.draws, min, max);
      },
  };
}

}  // namespace systole
