// The whole image, resized bilinearly as tf.image.resize does.
#include <memory>

#include "core/image/crop.h"
#include "core/operations/operation_rows.h"
#include "core/operations/sized_crop.h"
#include "core/status/status_macros.h"

namespace systole {

OperationRow ResizeRow() {
  return {
      .kind = v1::Transform::kResize,
      .guide =
          {
              .summary = "The whole image, resized.",
              .example = "resize { height: 224 width: 224 }",
              .tensorflow = "tf.image.resize",
              .torchvision = "Resize",
              .dali = "fn.resize",
              .parity = "exact",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::Resize& resize = arguments.transform.resize();
        SYSTOLE_RETURN_IF_ERROR(WantEdges(resize.height(), resize.width()));
        const auto rule = [](int height, int width, const ExampleKey&) {
          return WholeImage(height, width);
        };
        return std::make_unique<SizedCrop>(rule, resize.height(), resize.width());
      },
  };
}

}  // namespace systole
