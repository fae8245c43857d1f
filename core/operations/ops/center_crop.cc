// Cuts out a centred square and resizes it. core/image/window/crop.h and
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

absl::StatusOr<SizedCrop::Rule> FractionRule(const v1::CenterCrop& crop) {
  const float fraction = crop.fraction();
  if (!(fraction > 0 && fraction <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("fraction is ", crop.fraction(), ", want 0 < fraction <= 1"));
  }
  return [fraction](int height, int width, const ExampleKey&) {
    return CentreCrop(fraction, height, width);
  };
}

absl::StatusOr<SizedCrop::Rule> TpuResNetRule(const v1::CenterCrop& crop) {
  if (crop.fraction() != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "fraction is ", crop.fraction(),
        ", but rule: TPU_RESNET computes the fraction from height; leave fraction out"));
  }
  if (crop.height() != crop.width()) {
    return absl::InvalidArgumentError(absl::StrCat("has height: ", crop.height(),
                                                   " and width: ", crop.width(),
                                                   ", want a square with rule: TPU_RESNET"));
  }
  return [size = crop.height()](int height, int width, const ExampleKey&) {
    return PaddedCentreCrop(size, height, width);
  };
}

absl::StatusOr<SizedCrop::Rule> RuleOf(const v1::CenterCrop& crop) {
  switch (crop.rule()) {
    case v1::CenterCrop::FRACTION:
      return FractionRule(crop);
    case v1::CenterCrop::TPU_RESNET:
      return TpuResNetRule(crop);
    default:
      return absl::InvalidArgumentError(absl::StrCat("has rule ", static_cast<int>(crop.rule()),
                                                     ", want FRACTION or TPU_RESNET"));
  }
}

}  // namespace

OperationRow CenterCropRow() {
  return {
      .kind = v1::Transform::kCenterCrop,
      .guide =
          {
              .summary = "Cuts out the centred square and resizes it.",
              .example = "center_crop { height: 224 width: 224 fraction: 0.875 }",
              .torchvision = "Resize, then CenterCrop",
              .dali = "fn.crop",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::CenterCrop& crop = arguments.transform.center_crop();
        SYSTOLE_RETURN_IF_ERROR(WantEdges(crop.height(), crop.width()));
        SYSTOLE_ASSIGN_OR_RETURN(SizedCrop::Rule rule, RuleOf(crop));
        SYSTOLE_ASSIGN_OR_RETURN(const ResampleOptions options, ResampleOptionsOf(crop));
        return std::make_unique<SizedCrop>(std::move(rule), crop.height(), crop.width(), options);
      },
      .write_defaults =
          [](v1::Transform& transform) {
            v1::CenterCrop& crop = *transform.mutable_center_crop();
            if (crop.fraction() == 0 && crop.rule() == v1::CenterCrop::FRACTION) {
              crop.set_fraction(1);
            }
          },
  };
}

}  // namespace systole
