// Turns half of the images upside down.
#include <memory>

#include "core/image/window/crop.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/plain_image.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class RandomFlipUpDown final : public Operation {
 public:
  explicit RandomFlipUpDown(Draws draws) : draws_(draws) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    return input;
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const override {
    CounterRng rng = draws_.Rng(example);
    return DrawFlip(rng) ? TurnUpsideDownPlainly(input) : input;
  }

 private:
  Draws draws_;
};

}  // namespace

OperationRow RandomFlipUpDownRow() {
  return {
      .kind = v1::Transform::kRandomFlipUpDown,
      .guide =
          {
              .summary = "Turns half of the images upside down.",
              .example = "random_flip_up_down {}",
              .tensorflow = "tf.image.random_flip_up_down",
              .torchvision = "RandomVerticalFlip",
              .dali = "fn.flip",
              .parity = "different: our own draws, which depend on seed, epoch and record alone",
          },
      .draws = 5,
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        return std::make_unique<RandomFlipUpDown>(arguments.draws);
      },
  };
}

}  // namespace systole
