#include "core/operations/resize_method.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace systole {
namespace {

std::optional<ResampleMethod> MethodOf(v1::Resize::Method method) {
  switch (method) {
    case v1::Resize::BILINEAR:
      return ResampleMethod::kBilinear;
    case v1::Resize::NEAREST:
      return ResampleMethod::kNearest;
    case v1::Resize::BICUBIC:
      return ResampleMethod::kBicubic;
    case v1::Resize::AREA:
      return ResampleMethod::kArea;
    case v1::Resize::LANCZOS3:
      return ResampleMethod::kLanczos3;
    case v1::Resize::LANCZOS5:
      return ResampleMethod::kLanczos5;
    case v1::Resize::GAUSSIAN:
      return ResampleMethod::kGaussian;
    case v1::Resize::MITCHELLCUBIC:
      return ResampleMethod::kMitchellCubic;
    default:
      return std::nullopt;
  }
}

}  // namespace

absl::StatusOr<ResampleOptions> ResampleOptionsOf(v1::Resize::Method method, bool antialias,
                                                  v1::Resize::Sampling sampling) {
  const std::optional<ResampleMethod> known = MethodOf(method);
  if (!known.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("has method ", static_cast<int>(method),
                     ", want BILINEAR, NEAREST, BICUBIC, "
                     "AREA, LANCZOS3, LANCZOS5, GAUSSIAN or MITCHELLCUBIC"));
  }
  if (!v1::Resize::Sampling_IsValid(sampling)) {
    return absl::InvalidArgumentError(
        absl::StrCat("has sampling ", static_cast<int>(sampling), ", want HALF_PIXEL or TF1"));
  }
  const std::string name = v1::Resize::Method_Name(method);
  if (antialias && (known == ResampleMethod::kNearest || known == ResampleMethod::kArea)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has antialias: true, which does nothing with method: ", name, "; leave it out"));
  }
  if (sampling == v1::Resize::TF1) {
    if (antialias) {
      return absl::InvalidArgumentError(
          "has antialias: true and sampling: TF1, but TensorFlow 1 has no antialiasing; leave one "
          "of them out");
    }
    if (known != ResampleMethod::kBilinear && known != ResampleMethod::kNearest &&
        known != ResampleMethod::kBicubic) {
      return absl::InvalidArgumentError(absl::StrCat("has sampling: TF1 with method: ", name,
                                                     ", want BILINEAR, NEAREST or BICUBIC"));
    }
  }
  return ResampleOptions{.method = *known,
                         .antialias = antialias,
                         .half_pixel_centres = sampling == v1::Resize::HALF_PIXEL};
}

ElementType ResampledElement(const ResampleOptions& options, ElementType input) {
  return options.method == ResampleMethod::kNearest ? input : ElementType::kFloat32;
}

}  // namespace systole
