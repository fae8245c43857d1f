// Cuts out the central part of the image without a resize, as tf.image.central_crop does.
#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/image/window/crop.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/plain_image.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class CentralCrop final : public Operation {
 public:
  explicit CentralCrop(double fraction) : fraction_(fraction) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    ValueType output = input;
    if (input.has_size()) {
      const CropRect rect =
          RectOf(fraction_, static_cast<int>(input.shape[0]), static_cast<int>(input.shape[1]));
      output.shape = {rect.height, rect.width, input.shape[2]};
    }
    return output;
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    return CropPlainly(input, RectOf(fraction_, static_cast<int>(input.height()),
                                     static_cast<int>(input.width())));
  }

  std::vector<OperationPart> Parts() const override {
    return {WindowPart{.window = [fraction = fraction_](int height, int width, const ExampleKey&) {
      return RectOf(fraction, height, width);
    }}};
  }

 private:
  static CropRect RectOf(double fraction, int height, int width) {
    // Computed in double, as Python does. If the fraction is nearly 0, min() keeps 1 or 2 pixels.
    const auto start = [fraction](int side) {
      const auto whole = static_cast<double>(side);
      return std::min(static_cast<int>((whole - whole * fraction) / 2), (side - 1) / 2);
    };
    const int y = start(height);
    const int x = start(width);
    return {.y = y, .x = x, .height = height - 2 * y, .width = width - 2 * x};
  }

  double fraction_;
};

}  // namespace

OperationRow CentralCropRow() {
  return {
      .kind = v1::Transform::kCentralCrop,
      .guide =
          {
              .summary = "Cuts out the central part of the image, without a resize.",
              .example = "central_crop { fraction: 0.875 }",
              .tensorflow = "tf.image.central_crop",
              .parity = "exact",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const double fraction = arguments.transform.central_crop().fraction();
        if (!(fraction > 0 && fraction <= 1)) {
          return absl::InvalidArgumentError(
              absl::StrCat("fraction is ", fraction, ", want 0 < fraction <= 1"));
        }
        return std::make_unique<CentralCrop>(fraction);
      },
  };
}

}  // namespace systole
