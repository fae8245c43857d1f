// Limits values to two bounds, as tf.clip_by_value does.
#include <cmath>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/operations/ops/operation_rows.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

bool IsUint8(float value) { return value >= 0 && value <= 255 && std::trunc(value) == value; }

// NaN stays NaN. Both comparisons are always made, so that compilers vectorise the loop.
template <typename T>
void Clip(T min, T max, absl::Span<T> values) {
  for (T& x : values) {
    const T raised = x < min ? min : x;
    x = x > max ? max : raised;
  }
}

class ClipByValue final : public Operation {
 public:
  ClipByValue(float min, float max) : min_(min), max_(max) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantNumbers(input));
    if (input.element == ElementType::kUint8 && !(IsUint8(min_) && IsUint8(max_))) {
      return absl::InvalidArgumentError(
          absl::StrCat("has min: ", min_, " and max: ", max_,
                       ", want whole numbers from 0 to 255 for uint8 values"));
    }
    return input;
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    if (input.type.element == ElementType::kFloat32) {
      Clip(min_, max_, absl::MakeSpan(input.floats));
    } else {
      Clip(static_cast<uint8_t>(min_), static_cast<uint8_t>(max_), absl::MakeSpan(input.uint8s));
    }
    return input;
  }

  ByRow by_row() const override { return ByRow::kYes; }
  RowChange ChangeOf(const Value&, const ExampleKey&) const override {
    return [min = min_, max = max_](absl::Span<float> rows) { Clip(min, max, rows); };
  }

  int RulesByValue() const override { return 1; }

 private:
  float min_;
  float max_;
};

}  // namespace

OperationRow ClipByValueRow() {
  return {
      .kind = v1::Transform::kClipByValue,
      .guide =
          {
              .summary = "Limits values to two bounds.",
              .example = "clip_by_value { min: 0 max: 1 }",
              .tensorflow = "tf.clip_by_value",
              .torchvision = "torch.clamp",
              .dali = "math.clamp",
              .parity = "exact",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::ClipByValue& clip = arguments.transform.clip_by_value();
        if (!(clip.min() <= clip.max())) {
          return absl::InvalidArgumentError(
              absl::StrCat("has min: ", clip.min(), " and max: ", clip.max(), ", want min <= max"));
        }
        return std::make_unique<ClipByValue>(clip.min(), clip.max());
      },
  };
}

}  // namespace systole
