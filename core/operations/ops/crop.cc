// Cuts out a fixed rectangle of the image without a resize, as tf.image.crop_to_bounding_box does.
#include "core/image/window/crop.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/plain_image.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class Crop final : public Operation {
 public:
  explicit Crop(const CropRect& rect) : rect_(rect) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    if ((input.shape[0] != kAnySize && rect_.y + rect_.height > input.shape[0]) ||
        (input.shape[1] != kAnySize && rect_.x + rect_.width > input.shape[1])) {
      return absl::InvalidArgumentError(
          absl::StrCat("has height: ", rect_.height, ", width: ", rect_.width,
                       ", offset_height: ", rect_.y, " and offset_width: ", rect_.x,
                       ", but gets images of ", input.shape[0], " x ", input.shape[1], " pixels"));
    }
    return ValueType{.element = input.element,
                     .shape = {rect_.height, rect_.width, input.shape[2]}};
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    SYSTOLE_RETURN_IF_ERROR(
        CheckFits(rect_, static_cast<int>(input.height()), static_cast<int>(input.width())));
    return CropPlainly(input, rect_);
  }

  std::vector<OperationPart> Parts() const override {
    return {WindowPart{.window = [rect = rect_](int height, int width,
                                                const ExampleKey&) -> absl::StatusOr<CropRect> {
      SYSTOLE_RETURN_IF_ERROR(CheckFits(rect, height, width));
      return rect;
    }}};
  }

 private:
  static absl::Status CheckFits(const CropRect& rect, int height, int width) {
    if (rect.y + rect.height <= height && rect.x + rect.width <= width) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("crop needs rows up to ", rect.y + rect.height, " and columns up to ",
                     rect.x + rect.width, ", the image has ", height, " x ", width,
                     " pixels; resize first, or use crop_or_pad, which takes images of any size"));
  }

  CropRect rect_;
};

}  // namespace

OperationRow CropRow() {
  return {
      .kind = v1::Transform::kCrop,
      .guide =
          {
              .summary = "Cuts out the part of the image at a fixed place, without a resize.",
              .example = "crop { height: 32 width: 32 offset_height: 8 offset_width: 8 }",
              .tensorflow = "tf.image.crop_to_bounding_box",
              .torchvision = "functional.crop",
              .dali = "fn.slice",
              .parity = "exact",
              .combined_tensorflow = "tf.io.decode_and_crop_jpeg",
              .combined_parity =
                  "after decode_jpeg, exact with the same dct, with one exception. If the file "
                  "stores colours at half the width, the crop's first and last column can differ, "
                  "and all columns of a crop of 4 columns or fewer: here they are as in the whole "
                  "image, while TensorFlow computes them without the colours of the columns "
                  "beside the crop",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::Crop& crop = arguments.transform.crop();
        SYSTOLE_RETURN_IF_ERROR(WantEdges(crop.height(), crop.width()));
        SYSTOLE_RETURN_IF_ERROR(WantOffsets(crop.offset_height(), crop.offset_width()));
        return std::make_unique<Crop>(CropRect{.y = crop.offset_height(),
                                               .x = crop.offset_width(),
                                               .height = crop.height(),
                                               .width = crop.width()});
      },
  };
}

}  // namespace systole
