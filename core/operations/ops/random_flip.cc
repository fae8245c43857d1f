// Mirrors half of the images, left and right.
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/image/window/crop.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/plain_image.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class RandomFlip final : public Operation {
 public:
  explicit RandomFlip(Draws draws) : draws_(draws) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    return input;
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const override {
    return IsMirrored(draws_, example) ? MirrorPlainly(input) : input;
  }

  ByRow by_row() const override { return ByRow::kYes; }
  RowChange ChangeOf(const Value& image, const ExampleKey& example) const override {
    if (IsMirrored(draws_, example)) return MirroredRows(image.type);
    return [](absl::Span<float>) {};
  }

  std::vector<OperationPart> Parts() const override {
    return {MirrorPart{.mirrored = [draws = draws_](const ExampleKey& example) {
      return IsMirrored(draws, example);
    }}};
  }

 private:
  static bool IsMirrored(const Draws& draws, const ExampleKey& example) {
    if (draws.is_tensorflow()) return draws.TensorFlow(example).UniformFloat() < 0.5f;
    CounterRng rng = draws.Rng(example);
    return DrawFlip(rng);
  }

  Draws draws_;
};

}  // namespace

OperationRow RandomFlipRow() {
  return {
      .kind = v1::Transform::kRandomFlip,
      .guide =
          {
              .summary = "Mirrors half of the images, left and right.",
              .example = "random_flip {}",
              .tensorflow = "tf.image.random_flip_left_right",
              .torchvision = "RandomHorizontalFlip",
              .dali = "fn.flip",
              .parity = "different: our own draws, which depend on seed, epoch and record alone; "
                        "with tf_seed it draws as "
                        "tf.image.stateless_random_flip_left_right",
          },
      .draws = 2,
      .tensorflow_draws = true,
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        return std::make_unique<RandomFlip>(arguments.draws);
      },
  };
}

}  // namespace systole
