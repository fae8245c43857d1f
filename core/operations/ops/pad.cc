// Puts the image at a fixed place among zeros, as tf.image.pad_to_bounding_box does.
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/image/window/crop.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/plain_image.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class Pad final : public Operation {
 public:
  Pad(int height, int width, int y, int x) : height_(height), width_(width), y_(y), x_(x) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    if ((input.shape[0] != kAnySize && y_ + input.shape[0] > height_) ||
        (input.shape[1] != kAnySize && x_ + input.shape[1] > width_)) {
      return absl::InvalidArgumentError(
          absl::StrCat("has height: ", height_, ", width: ", width_, ", offset_height: ", y_,
                       " and offset_width: ", x_, ", but gets images of ", input.shape[0], " x ",
                       input.shape[1], " pixels"));
    }
    return ValueType{.element = input.element, .shape = {height_, width_, input.shape[2]}};
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    const auto in_height = static_cast<int>(input.height());
    const auto in_width = static_cast<int>(input.width());
    if (y_ + in_height > height_ || x_ + in_width > width_) {
      return absl::DataLossError(
          absl::StrCat("pad has room for ", height_ - y_, " x ", width_ - x_,
                       " pixels, the image has ", in_height, " x ", in_width,
                       "; resize first, or use crop_or_pad, which takes images of any size"));
    }
    return PlacePlainly(input, WholeImage(in_height, in_width), height_, width_, y_, x_);
  }

 private:
  int height_;
  int width_;
  int y_;
  int x_;
};

}  // namespace

OperationRow PadRow() {
  return {
      .kind = v1::Transform::kPad,
      .guide =
          {
              .summary = "Puts the image at a fixed place among zeros.",
              .example = "pad { height: 40 width: 40 offset_height: 4 offset_width: 4 }",
              .tensorflow = "tf.image.pad_to_bounding_box",
              .torchvision = "Pad",
              .dali = "fn.paste",
              .parity = "exact",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::Pad& pad = arguments.transform.pad();
        SYSTOLE_RETURN_IF_ERROR(WantEdges(pad.height(), pad.width()));
        SYSTOLE_RETURN_IF_ERROR(WantOffsets(pad.offset_height(), pad.offset_width()));
        return std::make_unique<Pad>(pad.height(), pad.width(), pad.offset_height(),
                                     pad.offset_width());
      },
  };
}

}  // namespace systole
