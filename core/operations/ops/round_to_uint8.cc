// Rounds values to uint8, half to even.
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/numeric/cast.h"
#include "core/numeric/normalise.h"
#include "core/operations/ops/operation_rows.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class RoundToWhole final : public Operation {
 public:
  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantNumbers(input));
    return ValueType{.element = ElementType::kUint8, .shape = input.shape};
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    if (input.type.element == ElementType::kUint8) return input;
    Value out = Value::Create(ElementType::kUint8, input.type.shape);
    for (size_t i = 0; i < out.uint8s.size(); ++i) out.uint8s[i] = RoundToUint8(input.floats[i]);
    return out;
  }

  absl::StatusOr<Value> Run(Value input, const ExampleKey&) const override {
    if (input.type.element == ElementType::kUint8) return input;
    Value out = Value::Create(ElementType::kUint8, input.type.shape);
    CastFloats(input.floats, PixelType::kUint8, absl::MakeSpan(out.uint8s));
    return out;
  }

  int RulesByValue() const override { return 1; }

  std::vector<OperationPart> Parts() const override { return {RoundPart{}}; }
};

}  // namespace

OperationRow RoundToUint8Row() {
  return {
      .kind = v1::Transform::kRoundToUint8,
      .guide =
          {
              .summary = "Rounds values half to even, to uint8.",
              .example = "round_to_uint8 {}",
              .tensorflow = "tf.cast(tf.round(x), tf.uint8)",
              .dali = "fn.cast",
              .parity = "exact for values from 0 to 255; others become 0 or 255",
          },
      .create = [](const OperationArguments&) -> absl::StatusOr<std::unique_ptr<const Operation>> {
        return std::make_unique<RoundToWhole>();
      },
  };
}

}  // namespace systole
