#include "core/operations/ops/resize_method.h"

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

// How many pixels a kernel reaches to each side if the image does not shrink. Nullopt if no kernel
// is used.
std::optional<int64_t> SpanRadius(const ResampleOptions& options) {
  switch (options.method) {
    case ResampleMethod::kBilinear:
      return options.antialias ? std::optional<int64_t>(1) : std::nullopt;
    case ResampleMethod::kBicubic:
      return options.antialias ? std::optional<int64_t>(2) : std::nullopt;
    case ResampleMethod::kLanczos3:
      return 3;
    case ResampleMethod::kLanczos5:
      return 5;
    case ResampleMethod::kGaussian:
    case ResampleMethod::kMitchellCubic:
      return 2;
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

int64_t ResampleWork(const ResampleOptions& options, const ValueType& input,
                     const ValueType& output) {
  const int64_t height = output.shape[0];
  const int64_t width = output.shape[1];
  const int64_t channels = output.shape[2];
  const int64_t shrinks_rows = input.shape[0] / height + 1;
  const int64_t shrinks_columns = input.shape[1] / width + 1;
  const int64_t made = height * width * channels;
  const std::optional<int64_t> radius = SpanRadius(options);
  if (radius.has_value()) {
    // The first pass makes rows as wide as the input. The second pass makes the columns.
    const int64_t read_rows = 2 * *radius * (options.antialias ? shrinks_rows : 1);
    const int64_t read_columns = 2 * *radius * (options.antialias ? shrinks_columns : 1);
    return height * input.shape[1] * channels * read_rows + made * read_columns;
  }
  switch (options.method) {
    case ResampleMethod::kNearest:
      return made;
    case ResampleMethod::kArea:
      return made * shrinks_rows * shrinks_columns;
    case ResampleMethod::kBicubic:
      return made * 16;
    default:
      return made;  // Bilinear.
  }
}

ElementType ResampledElement(const ResampleOptions& options, ElementType input) {
  return options.method == ResampleMethod::kNearest ? input : ElementType::kFloat32;
}

}  // namespace systole
