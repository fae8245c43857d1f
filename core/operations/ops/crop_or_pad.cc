// Gives the image a size by cutting and padding around the middle, as
// tf.image.resize_with_crop_or_pad does.
#include <algorithm>
#include <memory>

#include "core/image/window/crop.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/plain_image.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class CropOrPad final : public Operation {
 public:
  CropOrPad(int height, int width) : height_(height), width_(width) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    return ValueType{.element = input.element, .shape = {height_, width_, input.shape[2]}};
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    const auto in_height = static_cast<int>(input.height());
    const auto in_width = static_cast<int>(input.width());
    const CropRect rect = {.y = std::max(in_height - height_, 0) / 2,
                           .x = std::max(in_width - width_, 0) / 2,
                           .height = std::min(in_height, height_),
                           .width = std::min(in_width, width_)};
    return PlacePlainly(input, rect, height_, width_, std::max(height_ - in_height, 0) / 2,
                        std::max(width_ - in_width, 0) / 2);
  }

 private:
  int height_;
  int width_;
};

}  // namespace

OperationRow CropOrPadRow() {
  return {
      .kind = v1::Transform::kCropOrPad,
      .guide =
          {
              .summary = "Cuts the image, or pads it with zeros, around the middle.",
              .example = "crop_or_pad { height: 224 width: 224 }",
              .tensorflow = "tf.image.resize_with_crop_or_pad",
              .torchvision = "CenterCrop",
              .dali = "fn.crop",
              .parity = "exact",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::CropOrPad& crop = arguments.transform.crop_or_pad();
        SYSTOLE_RETURN_IF_ERROR(WantEdges(crop.height(), crop.width()));
        return std::make_unique<CropOrPad>(crop.height(), crop.width());
      },
  };
}

}  // namespace systole
