// Resizes the image in its own aspect ratio and puts it in the middle of zeros, as
// tf.image.resize_with_pad does.
#include <algorithm>
#include <cmath>
#include <memory>

#include "core/image/window/crop.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/plain_image.h"
#include "core/operations/ops/resize_method.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class ResizeWithPad final : public Operation {
 public:
  ResizeWithPad(int height, int width, const ResampleOptions& options)
      : height_(height), width_(width), options_(options) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    return ValueType{.element = ResampledElement(options_, input.element),
                     .shape = {height_, width_, input.shape[2]}};
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    return Resize(&ResamplePlainly, input);
  }

  absl::StatusOr<Value> Run(Value input, const ExampleKey&) const override {
    return Resize(&ResampleFast, input);
  }

  int64_t Work(const ValueType& input, const ValueType& output) const override {
    return ResampleWork(options_, input, output);
  }

 private:
  absl::StatusOr<Value> Resize(ResampleFunction resample, const Value& input) const {
    const auto in_height = static_cast<float>(input.height());
    const auto in_width = static_cast<float>(input.width());
    const float ratio =
        std::max(in_width / static_cast<float>(width_), in_height / static_cast<float>(height_));
    const auto [y, height] = PlaceOf(in_height / ratio, height_);
    const auto [x, width] = PlaceOf(in_width / ratio, width_);
    const CropRect whole =
        WholeImage(static_cast<int>(input.height()), static_cast<int>(input.width()));
    return resample(input, whole, options_, {.y = y, .x = x, .height = height, .width = width},
                    height_, width_);
  }

  struct Place {
    int begin = 0;
    int size = 0;
  };
  // Where a side of `resized` pixels lies in a side of `target` pixels. This is TensorFlow's rule,
  // in f32. TensorFlow fails if the size would be 0; here it is 1 pixel.
  static Place PlaceOf(float resized, int target) {
    const int begin = static_cast<int>(std::floor((static_cast<float>(target) - resized) / 2.0f));
    // Because of rounding, `resized` may be larger than `target` in its last bit.
    return {.begin = std::max(begin, 0),
            .size = std::clamp(static_cast<int>(std::floor(resized)), 1, target)};
  }

  int height_;
  int width_;
  ResampleOptions options_;
};

}  // namespace

OperationRow ResizeWithPadRow() {
  return {
      .kind = v1::Transform::kResizeWithPad,
      .guide =
          {
              .summary = "Resizes the image in its own aspect ratio, with zeros around it.",
              .example = "resize_with_pad { height: 224 width: 224 }",
              .tensorflow = "tf.image.resize_with_pad",
              .dali = "fn.resize, then fn.paste",
              .parity = "exact; within 2e-6 of the image's largest value for LANCZOS3, LANCZOS5 "
                        "and GAUSSIAN",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::ResizeWithPad& resize = arguments.transform.resize_with_pad();
        SYSTOLE_RETURN_IF_ERROR(WantEdges(resize.height(), resize.width()));
        SYSTOLE_ASSIGN_OR_RETURN(const ResampleOptions options, ResampleOptionsOf(resize));
        return std::make_unique<ResizeWithPad>(resize.height(), resize.width(), options);
      },
  };
}

}  // namespace systole
