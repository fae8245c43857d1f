// Chooses the scale at which an image is decoded if a crop of the image will be made much smaller.
// Also computes the crop's place in the image at that scale. A pure function of the crop and the
// output's size.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_IMAGE_SCALED_CROP_H_
#define SYSTOLE_CORE_IMAGE_SCALED_CROP_H_

#include "core/image/jpeg/jpeg_decoder.h"
#include "core/image/window/crop.h"

namespace systole {

struct ScaledCrop {
  JpegScale scale = JpegScale::kFull;
  CropRect rect;  // The pixels of the smaller image that the crop covers, whole or in part.
  // Where the crop lies in `rect`.
  SourceSide rows;
  SourceSide columns;

  friend bool operator==(const ScaledCrop&, const ScaledCrop&) = default;
};

// Chooses a scale for `crop`, and computes the crop's place at this scale. `crop` is a part of the
// stored image, and will be resized to out_height x out_width pixels. The scale is the smallest one
// at which each side of the crop has at least as many pixels as that side of the output. The edges
// of the crop are not rounded, so the crop does not shift. REQUIRES: neither the crop nor the
// output is empty.
ScaledCrop ScaleCrop(const CropRect& crop, int out_height, int out_width);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_SCALED_CROP_H_
