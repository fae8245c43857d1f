// Turns every image upside down.
#include <memory>

#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/plain_image.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class FlipUpDown final : public Operation {
 public:
  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    return input;
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    return TurnUpsideDownPlainly(input);
  }
};

}  // namespace

OperationRow FlipUpDownRow() {
  return {
      .kind = v1::Transform::kFlipUpDown,
      .guide =
          {
              .summary = "Turns every image upside down.",
              .example = "flip_up_down {}",
              .tensorflow = "tf.image.flip_up_down",
              .torchvision = "functional.vflip",
              .dali = "fn.flip",
              .parity = "exact",
          },
      .create = [](const OperationArguments&) -> absl::StatusOr<std::unique_ptr<const Operation>> {
        return std::make_unique<FlipUpDown>();
      },
  };
}

}  // namespace systole
