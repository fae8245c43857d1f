// Mirrors every image, left and right.
#include <memory>
#include <vector>

#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/plain_image.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class FlipLeftRight final : public Operation {
 public:
  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    return input;
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    return MirrorPlainly(input);
  }

  ByRow by_row() const override { return ByRow::kYes; }
  RowChange ChangeOf(const Value& image, const ExampleKey&) const override {
    return MirroredRows(image.type);
  }

  std::vector<OperationPart> Parts() const override {
    return {MirrorPart{.mirrored = [](const ExampleKey&) { return true; }}};
  }
};

}  // namespace

OperationRow FlipLeftRightRow() {
  return {
      .kind = v1::Transform::kFlipLeftRight,
      .guide =
          {
              .summary = "Mirrors every image, left and right.",
              .example = "flip_left_right {}",
              .tensorflow = "tf.image.flip_left_right",
              .torchvision = "functional.hflip",
              .dali = "fn.flip",
              .parity = "exact",
          },
      .create = [](const OperationArguments&) -> absl::StatusOr<std::unique_ptr<const Operation>> {
        return std::make_unique<FlipLeftRight>();
      },
  };
}

}  // namespace systole
