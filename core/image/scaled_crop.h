// How a crop that becomes much smaller is cut from an image that is decoded at a smaller scale: a
// pure function of both sizes.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_IMAGE_SCALED_CROP_H_
#define SYSTOLE_CORE_IMAGE_SCALED_CROP_H_

#include "core/image/jpeg/jpeg_decoder.h"
#include "core/image/window/crop.h"

namespace systole {

struct ScaledCrop {
  JpegScale scale = JpegScale::kFull;
  CropRect rect;  // Pixels of the smaller image: those that the crop lies on, whole or in part.
  // Where the crop lies in `rect`.
  SourceSide rows;
  SourceSide columns;

  friend bool operator==(const ScaledCrop&, const ScaledCrop&) = default;
};

// `crop` of the stored image becomes out_height x out_width pixels. The scale is the smallest one
// at which both sides of the crop still have as many pixels as the output's. The crop stays where
// it is: its edges are divided and not rounded. REQUIRES: neither the crop nor the output is empty.
ScaledCrop ScaleCrop(const CropRect& crop, int out_height, int out_width);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_SCALED_CROP_H_
