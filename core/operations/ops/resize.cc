// Resizes the whole image as tf.image.resize does: to a given size, or to the largest size of the
// image's own aspect ratio that fits into it.
#include <algorithm>
#include <cmath>
#include <memory>

#include "core/image/window/crop.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/plain_image.h"
#include "core/operations/ops/resize_method.h"
#include "core/operations/ops/sized_crop.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class FittingResize final : public Operation {
 public:
  FittingResize(int height, int width, const ResampleOptions& options)
      : height_(height), width_(width), options_(options) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    ValueType output = {.element = ResampledElement(options_, input.element),
                        .shape = {kAnySize, kAnySize, input.shape[2]}};
    if (input.has_size()) {
      const CropRect size = SizeOf(input.shape[0], input.shape[1]);
      output.shape = {size.height, size.width, input.shape[2]};
    }
    return output;
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
    const CropRect size = SizeOf(input.height(), input.width());
    const CropRect whole =
        WholeImage(static_cast<int>(input.height()), static_cast<int>(input.width()));
    return resample(input, whole, options_, size, size.height, size.width);
  }

  // The size of the result, computed in f32 as in TensorFlow. TensorFlow fails if a side would be
  // 0; here that side is 1 pixel.
  CropRect SizeOf(int64_t height, int64_t width) const {
    const auto from_height = static_cast<float>(height);
    const auto from_width = static_cast<float>(width);
    const float scale = std::min(static_cast<float>(height_) / from_height,
                                 static_cast<float>(width_) / from_width);
    // nearbyint() rounds half to even. `scale` may be a little too large, because f32 rounds. A
    // side is then too long by less than half a pixel, and nearbyint() rounds this away.
    const auto side = [scale](float from) {
      return std::max(1, static_cast<int>(std::nearbyint(scale * from)));
    };
    return WholeImage(side(from_height), side(from_width));
  }

  int height_;
  int width_;
  ResampleOptions options_;
};

}  // namespace

OperationRow ResizeRow() {
  return {
      .kind = v1::Transform::kResize,
      .guide =
          {
              .summary = "Resizes the whole image by any method of TensorFlow.",
              .example = "resize { height: 224 width: 224 }",
              .tensorflow = "tf.image.resize",
              .torchvision = "Resize",
              .dali = "fn.resize",
              .parity = "exact; within 2e-6 of the image's largest value for LANCZOS3, LANCZOS5 "
                        "and GAUSSIAN",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::Resize& resize = arguments.transform.resize();
        SYSTOLE_RETURN_IF_ERROR(WantEdges(resize.height(), resize.width()));
        SYSTOLE_ASSIGN_OR_RETURN(const ResampleOptions options, ResampleOptionsOf(resize));
        if (resize.preserve_aspect_ratio()) {
          return std::make_unique<FittingResize>(resize.height(), resize.width(), options);
        }
        const auto rule = [](int height, int width, const ExampleKey&) {
          return WholeImage(height, width);
        };
        return std::make_unique<SizedCrop>(rule, resize.height(), resize.width(), options);
      },
  };
}

}  // namespace systole
