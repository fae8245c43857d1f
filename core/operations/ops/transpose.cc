// Swaps rows and columns.
#include <memory>

#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/plain_image.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class Transpose final : public Operation {
 public:
  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    return ValueType{.element = input.element,
                     .shape = {input.shape[1], input.shape[0], input.shape[2]}};
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    return TransposePlainly(input);
  }
};

}  // namespace

OperationRow TransposeRow() {
  return {
      .kind = v1::Transform::kTranspose,
      .guide =
          {
              .summary = "Swaps rows and columns.",
              .example = "transpose {}",
              .tensorflow = "tf.image.transpose",
              .dali = "fn.transpose",
              .parity = "exact",
          },
      .create = [](const OperationArguments&) -> absl::StatusOr<std::unique_ptr<const Operation>> {
        return std::make_unique<Transpose>();
      },
  };
}

}  // namespace systole
