#include "core/image/window/distorted_box.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Rounds to the nearest integer, ties to even. Values stay far below 2^31: edges are below 2^16,
// and aspects are 0.001 to 1000.
int Round(float value) { return static_cast<int>(std::nearbyint(value)); }

float AreaOf(int height, int width) { return static_cast<float>(int64_t{height} * width); }

// Makes one attempt. Every step is TensorFlow's. Steps that look redundant change which boxes can
// be drawn.
std::optional<CropRect> DrawBox(const RandomResizedCropOptions& ranges, float aspect,
                                int image_height, int image_width, BoxDraws& draws) {
  const auto whole_width = static_cast<float>(image_width);
  const auto whole_height = static_cast<float>(image_height);
  const float min_area = ranges.min_area * whole_width * whole_height;
  const float max_area = ranges.max_area * whole_width * whole_height;
  const auto width_of = [aspect](int height) { return Round(static_cast<float>(height) * aspect); };

  int height = Round(std::sqrt(min_area / aspect));
  int max_height = Round(std::sqrt(max_area / aspect));
  if (width_of(max_height) > image_width) {
    constexpr float kEpsilon = 0.0000001f;
    max_height = static_cast<int>((image_width + 0.5 - kEpsilon) / aspect);
    if (width_of(max_height) > image_width) --max_height;
  }
  max_height = std::min(max_height, image_height);
  height = std::min(height, max_height);
  if (height < max_height) height += draws.Below(max_height - height + 1);

  // Rounding may have moved the area out of its range. A box that is too small gets one row more; a
  // box that is too large gets one row less.
  int width = width_of(height);
  if (AreaOf(height, width) < min_area) {
    ++height;
    width = width_of(height);
  }
  if (AreaOf(height, width) > max_area) {
    --height;
    width = width_of(height);
  }
  const float area = AreaOf(height, width);
  if (area < min_area || area > max_area || width > image_width || height > image_height ||
      width < 1 || height < 1) {
    return std::nullopt;
  }
  CropRect box = {.height = height, .width = width};
  if (height < image_height) box.y = draws.Below(image_height - height);
  if (width < image_width) box.x = draws.Below(image_width - width);
  return box;
}

}  // namespace

absl::Status CheckDistortedBox(const DistortedBoxOptions& options) {
  SYSTOLE_RETURN_IF_ERROR(CheckRandomResizedCrop(options.ranges));
  if (options.min_object_covered >= 0 && options.min_object_covered <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("min_object_covered is ", options.min_object_covered, ", want 0 to 1"));
}

CropRect DistortedBox(const DistortedBoxOptions& options, int height, int width, BoxDraws& draws) {
  SYSTOLE_CHECK(height > 0 && width > 0 && height <= 65535 && width <= 65535);
  const RandomResizedCropOptions& ranges = options.ranges;
  for (int attempt = 0; attempt < ranges.attempts; ++attempt) {
    const float aspect = draws.Unit() * (ranges.max_aspect - ranges.min_aspect) + ranges.min_aspect;
    const std::optional<CropRect> box = DrawBox(ranges, aspect, height, width, draws);
    if (!box.has_value()) continue;
    const float covered = AreaOf(box->height, box->width) / AreaOf(height, width);
    if (covered >= options.min_object_covered) return *box;
  }
  return WholeImage(height, width);
}

CropRect PaddedCentreCrop(int size, int height, int width) {
  SYSTOLE_CHECK(size > 0 && height > 0 && width > 0);
  const auto fraction = static_cast<float>(size / (size + 32.0));
  const auto side = static_cast<int>(fraction * static_cast<float>(std::min(height, width)));
  const int crop = std::max(side, 1);
  return {(height - crop + 1) / 2, (width - crop + 1) / 2, crop, crop};
}

}  // namespace systole
