// Cuts out a random rectangle of a given size, without a resize.
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/plain_image.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class RandomCrop final : public Operation {
 public:
  RandomCrop(Draws draws, int height, int width) : draws_(draws), height_(height), width_(width) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    if ((input.shape[0] != kAnySize && input.shape[0] < height_) ||
        (input.shape[1] != kAnySize && input.shape[1] < width_)) {
      return absl::InvalidArgumentError(
          absl::StrCat("has height: ", height_, " and width: ", width_, ", but gets images of ",
                       input.shape[0], " x ", input.shape[1], " pixels"));
    }
    return ValueType{.element = input.element, .shape = {height_, width_, input.shape[2]}};
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const override {
    SYSTOLE_ASSIGN_OR_RETURN(const CropRect rect,
                             RectOf(draws_, height_, width_, static_cast<int>(input.height()),
                                    static_cast<int>(input.width()), example));
    return CropPlainly(input, rect);
  }

  std::vector<OperationPart> Parts() const override {
    return {WindowPart{.window = [draws = draws_, want_height = height_, want_width = width_](
                                     int height, int width, const ExampleKey& example) {
      return RectOf(draws, want_height, want_width, height, width, example);
    }}};
  }

 private:
  static absl::StatusOr<CropRect> RectOf(const Draws& draws, int want_height, int want_width,
                                         int height, int width, const ExampleKey& example) {
    if (height < want_height || width < want_width) {
      return absl::DataLossError(absl::StrCat("random_crop needs ", want_height, " x ", want_width,
                                              " pixels, the image has ", height, " x ", width,
                                              "; give a smaller crop, or resize first"));
    }
    if (draws.is_tensorflow()) {
      TensorFlowRng rng = draws.TensorFlow(example);
      constexpr int32_t kLimit = std::numeric_limits<int32_t>::max();
      const int32_t y = rng.UniformInt(kLimit) % (height - want_height + 1);
      const int32_t x = rng.UniformInt(kLimit) % (width - want_width + 1);
      return CropRect{.y = y, .x = x, .height = want_height, .width = want_width};
    }
    CounterRng rng = draws.Rng(example);
    const auto y = static_cast<int>(rng.UniformInt(0, height - want_height + 1));
    const auto x = static_cast<int>(rng.UniformInt(0, width - want_width + 1));
    return CropRect{.y = y, .x = x, .height = want_height, .width = want_width};
  }

  Draws draws_;
  int height_;
  int width_;
};

}  // namespace

OperationRow RandomCropRow() {
  return {
      .kind = v1::Transform::kRandomCrop,
      .guide =
          {
              .summary = "Cuts out a random part of the image, without a resize.",
              .example = "random_crop { height: 32 width: 32 }",
              .tensorflow = "tf.image.random_crop",
              .torchvision = "RandomCrop",
              .dali = "fn.crop",
              .parity =
                  "different: our own draws, which depend on seed, epoch and record alone; with "
                  "tf_seed it draws as tf.image.stateless_random_crop",
          },
      .draws = 3,
      .tensorflow_draws = true,
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::RandomCrop& crop = arguments.transform.random_crop();
        SYSTOLE_RETURN_IF_ERROR(WantEdges(crop.height(), crop.width()));
        return std::make_unique<RandomCrop>(arguments.draws, crop.height(), crop.width());
      },
  };
}

}  // namespace systole
