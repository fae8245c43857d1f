#include "core/image/scaled_crop.h"

namespace systole {
namespace {

// Scales the pixels [begin, begin + size). Returns the first pixel of the smaller image that the
// scaled pixels cover, whole or in part. Sets `side` to the place of the scaled pixels, counted
// from that first pixel. The quotients are exact in float: a side has 16 bits, and the divisor is
// 1, 2, 4 or 8.
int ScaleSide(int begin, int size, JpegScale scale, SourceSide& side) {
  const int divisor = static_cast<int>(scale);
  const int first = begin / divisor;
  side.pixels = ScaledSide(begin + size, scale) - first;
  side.begin = static_cast<float>(begin % divisor) / static_cast<float>(divisor);
  side.extent = static_cast<float>(size) / static_cast<float>(divisor);
  return first;
}

}  // namespace

ScaledCrop ScaleCrop(const CropRect& crop, int out_height, int out_width) {
  ScaledCrop scaled;
  for (const JpegScale scale : {JpegScale::kHalf, JpegScale::kQuarter, JpegScale::kEighth}) {
    const int divisor = static_cast<int>(scale);
    if (crop.height / divisor >= out_height && crop.width / divisor >= out_width) {
      scaled.scale = scale;
    }
  }
  scaled.rect.y = ScaleSide(crop.y, crop.height, scaled.scale, scaled.rows);
  scaled.rect.x = ScaleSide(crop.x, crop.width, scaled.scale, scaled.columns);
  scaled.rect.height = scaled.rows.pixels;
  scaled.rect.width = scaled.columns.pixels;
  return scaled;
}

}  // namespace systole
