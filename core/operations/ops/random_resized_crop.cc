// Cuts out a random part of the image and resizes it. core/image/window/crop.h and
// core/image/window/distorted_box.h have the rules.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/image/window/crop.h"
#include "core/image/window/distorted_box.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/resize_method.h"
#include "core/operations/ops/sized_crop.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

using Rule = v1::RandomResizedCrop::Rule;

// The defaults of a rule.
RandomResizedCropOptions RangesOf(Rule rule) {
  RandomResizedCropOptions ranges;
  if (rule == v1::RandomResizedCrop::TF_DISTORTED_BOX) ranges = DistortedBoxOptions().ranges;
  return ranges;
}

absl::StatusOr<SizedCrop::Rule> TorchvisionRule(const RandomResizedCropOptions& ranges,
                                                const Draws& draws) {
  SYSTOLE_RETURN_IF_ERROR(CheckRandomResizedCrop(ranges));
  return [ranges, draws](int height, int width, const ExampleKey& example) {
    CounterRng rng = draws.Rng(example);
    return RandomResizedCrop(ranges, height, width, rng);
  };
}

// If `centre_size` is not 0, a box as large as the image is replaced by a PaddedCentreCrop of size
// `centre_size`.
absl::StatusOr<SizedCrop::Rule> DistortedBoxRule(const DistortedBoxOptions& options,
                                                 int centre_size, const Draws& draws) {
  SYSTOLE_RETURN_IF_ERROR(CheckDistortedBox(options));
  return [options, centre_size, draws](int height, int width, const ExampleKey& example) {
    CounterRng rng = draws.Rng(example);
    CounterBoxDraws box_draws(rng);
    const CropRect box = DistortedBox(options, height, width, box_draws);
    if (centre_size == 0 || box != WholeImage(height, width)) return box;
    return PaddedCentreCrop(centre_size, height, width);
  };
}

absl::StatusOr<SizedCrop::Rule> RuleOf(const v1::RandomResizedCrop& crop, const Draws& draws) {
  if (!v1::RandomResizedCrop::Rule_IsValid(crop.rule())) {
    return absl::InvalidArgumentError(
        absl::StrCat("has rule ", static_cast<int>(crop.rule()),
                     ", want TORCHVISION, TF_DISTORTED_BOX or TPU_RESNET"));
  }
  const RandomResizedCropOptions ranges = {.min_area = crop.area_min(),
                                           .max_area = crop.area_max(),
                                           .min_aspect = crop.aspect_min(),
                                           .max_aspect = crop.aspect_max(),
                                           .attempts = crop.attempts()};
  if (crop.rule() == v1::RandomResizedCrop::TORCHVISION) {
    if (crop.min_object_covered() != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("min_object_covered is ", crop.min_object_covered(),
                       ", but rule: TORCHVISION does not use it; leave it out, or raise area_min"));
    }
    return TorchvisionRule(ranges, draws);
  }
  const DistortedBoxOptions options = {.ranges = ranges,
                                       .min_object_covered = crop.min_object_covered()};
  if (crop.rule() == v1::RandomResizedCrop::TF_DISTORTED_BOX) {
    return DistortedBoxRule(options, 0, draws);
  }
  if (crop.height() != crop.width()) {
    return absl::InvalidArgumentError(absl::StrCat("has height: ", crop.height(),
                                                   " and width: ", crop.width(),
                                                   ", want a square with rule: TPU_RESNET"));
  }
  return DistortedBoxRule(options, crop.height(), draws);
}

}  // namespace

OperationRow RandomResizedCropRow() {
  return {
      .kind = v1::Transform::kRandomResizedCrop,
      .guide =
          {
              .summary = "Cuts out a random part of the image and resizes it.",
              .example = "random_resized_crop { height: 224 width: 224 }",
              .tensorflow = "tf.image.sample_distorted_bounding_box",
              .torchvision = "RandomResizedCrop",
              .dali = "fn.random_resized_crop",
              .parity = "different: our own draws, which depend on seed, epoch and record alone; "
                        "given TensorFlow's draws, rule TF_DISTORTED_BOX gives the same boxes as "
                        "TensorFlow. "
                        "The resize is exact",
          },
      .draws = 1,
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::RandomResizedCrop& crop = arguments.transform.random_resized_crop();
        SYSTOLE_RETURN_IF_ERROR(WantEdges(crop.height(), crop.width()));
        SYSTOLE_ASSIGN_OR_RETURN(SizedCrop::Rule rule, RuleOf(crop, arguments.draws));
        SYSTOLE_ASSIGN_OR_RETURN(const ResampleOptions options, ResampleOptionsOf(crop));
        return std::make_unique<SizedCrop>(std::move(rule), crop.height(), crop.width(), options);
      },
      .write_defaults =
          [](v1::Transform& transform) {
            v1::RandomResizedCrop& crop = *transform.mutable_random_resized_crop();
            const RandomResizedCropOptions defaults = RangesOf(crop.rule());
            if (crop.area_min() == 0) crop.set_area_min(defaults.min_area);
            if (crop.area_max() == 0) crop.set_area_max(defaults.max_area);
            if (crop.aspect_min() == 0) crop.set_aspect_min(defaults.min_aspect);
            if (crop.aspect_max() == 0) crop.set_aspect_max(defaults.max_aspect);
            if (crop.attempts() == 0) crop.set_attempts(defaults.attempts);
            if (crop.min_object_covered() == 0 &&
                crop.rule() != v1::RandomResizedCrop::TORCHVISION) {
              crop.set_min_object_covered(DistortedBoxOptions().min_object_covered);
            }
          },
  };
}

}  // namespace systole
