// Turns every image by quarters of a full turn, as tf.image.rot90 does.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/plain_image.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class Rot90 final : public Operation {
 public:
  explicit Rot90(int quarters) : quarters_(quarters) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    ValueType output = input;
    if (quarters_ != 2) std::swap(output.shape[0], output.shape[1]);
    return output;
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    return RotatePlainly(input, quarters_);
  }

 private:
  int quarters_;
};

}  // namespace

OperationRow Rot90Row() {
  return {
      .kind = v1::Transform::kRot90,
      .guide =
          {
              .summary = "Turns every image by k * 90 degrees, counter-clockwise.",
              .example = "rot90 { k: 1 }",
              .tensorflow = "tf.image.rot90",
              .torchvision = "functional.rotate",
              .dali = "fn.rotate",
              .parity = "exact",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const int k = arguments.transform.rot90().k();
        if (k < 1 || k > 3)
          return absl::InvalidArgumentError(absl::StrCat("k is ", k, ", want 1 to 3"));
        return std::make_unique<Rot90>(k);
      },
      .write_defaults =
          [](v1::Transform& transform) {
            v1::Rot90& rotation = *transform.mutable_rot90();
            if (rotation.k() == 0) rotation.set_k(1);
          },
  };
}

}  // namespace systole
