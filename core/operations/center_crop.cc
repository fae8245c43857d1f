// The centred square, resized: core/image/crop.h has the rule.
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/image/crop.h"
#include "core/operations/operation_rows.h"
#include "core/operations/sized_crop.h"
#include "core/status/status_macros.h"

namespace systole {

OperationRow CenterCropRow() {
  return {
      .kind = v1::Transform::kCenterCrop,
      .guide =
          {
              .summary = "The centred square, resized.",
              .example = "center_crop { height: 224 width: 224 fraction: 0.875 }",
              .torchvision = "Resize, then CenterCrop",
              .dali = "fn.crop",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::CenterCrop& crop = arguments.transform.center_crop();
        SYSTOLE_RETURN_IF_ERROR(WantEdges(crop.height(), crop.width()));
        const float fraction = crop.fraction() == 0 ? 1 : crop.fraction();
        if (!(fraction > 0 && fraction <= 1)) {
          return absl::InvalidArgumentError(
              absl::StrCat("fraction is ", crop.fraction(), ", want 0 < fraction <= 1"));
        }
        const auto rule = [fraction](int height, int width, const ExampleKey&) {
          return CentreCrop(fraction, height, width);
        };
        return std::make_unique<SizedCrop>(rule, crop.height(), crop.width());
      },
      .write_defaults =
          [](v1::Transform& transform) {
            v1::CenterCrop& crop = *transform.mutable_center_crop();
            if (crop.fraction() == 0) crop.set_fraction(1);
          },
  };
}

}  // namespace systole
