// Chooses the part of an image that an example shows. The functions are pure: the part depends only
// on the image's size, the options and the random draws. Sizes and rectangles are in pixels of the
// stored image. EXIF orientation is ignored, as in TensorFlow.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_IMAGE_WINDOW_CROP_H_
#define SYSTOLE_CORE_IMAGE_WINDOW_CROP_H_

#include "absl/status/status.h"
#include "core/random/counter_rng.h"

namespace systole {

// Rows [y, y + height), columns [x, x + width).
struct CropRect {
  int y = 0;
  int x = 0;
  int height = 0;
  int width = 0;

  friend bool operator==(const CropRect&, const CropRect&) = default;
};

// One side of a crop whose edges may lie within pixels. The source has `pixels` pixels along this
// side, and pixel i covers [i, i + 1). The crop covers [begin, begin + extent).
// 0 <= begin, 0 < extent, begin + extent <= pixels.
struct SourceSide {
  int pixels = 0;
  float begin = 0;
  float extent = 0;

  friend bool operator==(const SourceSide&, const SourceSide&) = default;
};

inline SourceSide WholeSide(int pixels) {
  return {.pixels = pixels, .begin = 0, .extent = static_cast<float>(pixels)};
}

// InvalidArgument if `crop` is empty, or does not lie inside a height x width image. The message
// has both sizes.
absl::Status CheckCropInside(const CropRect& crop, int height, int width);

// torchvision's RandomResizedCrop. ImageNet networks are trained with this crop.
struct RandomResizedCropOptions {
  // The area of the crop as a fraction of the image's area, drawn uniformly. 0 < min <= max <= 1.
  float min_area = 0.08f;
  float max_area = 1.0f;
  // The crop's width / height, drawn uniformly on a log scale. 0.001 <= min <= max <= 1000.
  float min_aspect = 3.0f / 4.0f;
  float max_aspect = 4.0f / 3.0f;
  // The most crops that are drawn, 1 to 1000. If none of these crops fits the image,
  // RandomResizedCrop() uses its fallback.
  int attempts = 10;
};

// InvalidArgument naming the field that is out of range.
absl::Status CheckRandomResizedCrop(const RandomResizedCropOptions& options);

// Each attempt draws an area and then an aspect (both by UniformFloat). For the first crop that
// fits, y and then x are drawn (UniformInt). If no crop fits, the result is the fallback: the
// largest centred crop whose aspect is within the range. REQUIRES: height, width > 0 and valid
// options.
CropRect RandomResizedCrop(const RandomResizedCropOptions& options, int height, int width,
                           CounterRng& rng);

// The centred square whose side is floor(fraction * the image's shorter side) pixels, at least 1.
// If the margin is odd, the larger half lies above and left of the crop. The TPU ResNet uses this
// rule with the fraction 224/256. REQUIRES: height, width > 0 and 0 < fraction <= 1.
CropRect CentreCrop(float fraction, int height, int width);

inline CropRect WholeImage(int height, int width) { return {0, 0, height, width}; }

// Whether to mirror left and right: UniformFloat() < 0.5.
bool DrawFlip(CounterRng& rng);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_WINDOW_CROP_H_
