#include "core/image/window/crop.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/numeric/math.h"
#include "core/status/check.h"

namespace systole {
namespace {

// The nearest integer, ties to even. The value is clamped to [low, high] before the conversion.
int RoundToInt(double value, int low, int high) {
  return static_cast<int>(
      std::clamp(std::nearbyint(value), static_cast<double>(low), static_cast<double>(high)));
}

absl::Status OutOfRange(const char* field, double low, double high, const char* want) {
  return absl::InvalidArgumentError(
      absl::StrCat("has ", field, "_min: ", low, " and ", field, "_max: ", high, ", want ", want));
}

}  // namespace

absl::Status CheckCropInside(const CropRect& crop, int height, int width) {
  if (crop.height > 0 && crop.width > 0 && crop.y >= 0 && crop.x >= 0 && crop.height <= height &&
      crop.width <= width && crop.y <= height - crop.height && crop.x <= width - crop.width) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "crop of ", crop.height, "x", crop.width, " pixels at (y ", crop.y, ", x ", crop.x,
      ") is empty or not inside the image of ", height, "x", width, " (height x width)"));
}

absl::Status CheckRandomResizedCrop(const RandomResizedCropOptions& options) {
  // This form of the condition also refuses NaN.
  if (!(options.min_area > 0 && options.min_area <= options.max_area && options.max_area <= 1)) {
    return OutOfRange("area", options.min_area, options.max_area, "0 < min <= max <= 1");
  }
  if (!(options.min_aspect >= 1e-3f && options.min_aspect <= options.max_aspect &&
        options.max_aspect <= 1e3f)) {
    return OutOfRange("aspect", options.min_aspect, options.max_aspect,
                      "0.001 <= min <= max <= 1000");
  }
  if (options.attempts < 1 || options.attempts > 1000) {
    return absl::InvalidArgumentError(
        absl::StrCat("attempts is ", options.attempts, ", want 1 to 1000"));
  }
  return absl::OkStatus();
}

CropRect RandomResizedCrop(const RandomResizedCropOptions& options, int height, int width,
                           CounterRng& rng) {
  SYSTOLE_CHECK(height > 0 && width > 0);
  const double image_area = static_cast<double>(height) * width;
  const float log_min = Log(options.min_aspect);
  const float log_max = Log(options.max_aspect);
  for (int attempt = 0; attempt < options.attempts; ++attempt) {
    const double area_draw = rng.UniformFloat();
    const float aspect_draw = rng.UniformFloat();
    const double area =
        image_area *
        (options.min_area + (static_cast<double>(options.max_area) - options.min_area) * area_draw);
    const double aspect = Exp(log_min + (log_max - log_min) * aspect_draw);
    // A size above the image's size becomes the image's size plus one.
    const int crop_width = RoundToInt(std::sqrt(area * aspect), 0, width + 1);
    const int crop_height = RoundToInt(std::sqrt(area / aspect), 0, height + 1);
    if (crop_width < 1 || crop_width > width || crop_height < 1 || crop_height > height) continue;
    const int y = static_cast<int>(rng.UniformInt(0, height - crop_height + 1));
    const int x = static_cast<int>(rng.UniformInt(0, width - crop_width + 1));
    return {y, x, crop_height, crop_width};
  }
  int crop_width = width;
  int crop_height = height;
  const double image_aspect = static_cast<double>(width) / height;
  if (image_aspect < options.min_aspect) {
    crop_height = RoundToInt(width / static_cast<double>(options.min_aspect), 1, height);
  } else if (image_aspect > options.max_aspect) {
    crop_width = RoundToInt(height * static_cast<double>(options.max_aspect), 1, width);
  }
  return {(height - crop_height) / 2, (width - crop_width) / 2, crop_height, crop_width};
}

CropRect CentreCrop(float fraction, int height, int width) {
  SYSTOLE_CHECK(height > 0 && width > 0 && fraction > 0 && fraction <= 1);
  const int short_side = std::min(height, width);
  const int size = std::max(1, static_cast<int>(static_cast<double>(fraction) * short_side));
  return {(height - size + 1) / 2, (width - size + 1) / 2, size, size};
}

bool DrawFlip(CounterRng& rng) { return rng.UniformFloat() < 0.5f; }

}  // namespace systole
