// A random part of the image, resized: core/image/crop.h has the rule.
#include <memory>

#include "core/image/crop.h"
#include "core/operations/operation_rows.h"
#include "core/operations/sized_crop.h"
#include "core/status/status_macros.h"

namespace systole {

OperationRow RandomResizedCropRow() {
  return {
      .kind = v1::Transform::kRandomResizedCrop,
      .guide =
          {
              .summary = "A random part of the image, resized.",
              .example = "random_resized_crop { height: 224 width: 224 }",
              .tensorflow = "tf.image.sample_distorted_bounding_box",
              .torchvision = "RandomResizedCrop",
              .dali = "fn.random_resized_crop",
              .parity = "different: torchvision's rule for the part, and draws of our own, "
                        "which do not depend on what was drawn before; the resize is exact",
          },
      .draws = 1,
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::RandomResizedCrop& crop = arguments.transform.random_resized_crop();
        SYSTOLE_RETURN_IF_ERROR(WantEdges(crop.height(), crop.width()));
        RandomResizedCropOptions options;
        if (crop.area_min() != 0) options.min_area = crop.area_min();
        if (crop.area_max() != 0) options.max_area = crop.area_max();
        if (crop.aspect_min() != 0) options.min_aspect = crop.aspect_min();
        if (crop.aspect_max() != 0) options.max_aspect = crop.aspect_max();
        SYSTOLE_RETURN_IF_ERROR(CheckRandomResizedCrop(options));
        const auto rule = [options, draws = arguments.draws](int height, int width,
                                                             const ExampleKey& example) {
          CounterRng rng = draws.Rng(example);
          return RandomResizedCrop(options, height, width, rng);
        };
        return std::make_unique<SizedCrop>(rule, crop.height(), crop.width());
      },
      .write_defaults =
          [](v1::Transform& transform) {
            v1::RandomResizedCrop& crop = *transform.mutable_random_resized_crop();
            const RandomResizedCropOptions defaults;
            if (crop.area_min() == 0) crop.set_area_min(defaults.min_area);
            if (crop.area_max() == 0) crop.set_area_max(defaults.max_area);
            if (crop.aspect_min() == 0) crop.set_aspect_min(defaults.min_aspect);
            if (crop.aspect_max() == 0) crop.set_aspect_max(defaults.max_aspect);
          },
  };
}

}  // namespace systole
