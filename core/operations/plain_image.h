// Crop, mirror and resize of an image, written the obvious way, for the references of operations.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_PLAIN_IMAGE_H_
#define SYSTOLE_CORE_OPERATIONS_PLAIN_IMAGE_H_

#include "core/image/crop.h"
#include "core/operations/value.h"

namespace systole {

// All take images of kUint8 or kFloat32. `rect` lies inside the image.
Value CropPlainly(const Value& image, const CropRect& rect);
Value MirrorPlainly(const Value& image);

// Resizes `rect` of the image to [height, width] kFloat32, with the arithmetic of BilinearResizer
// (core/image/bilinear_resizer.h).
Value ResizePlainly(const Value& image, const CropRect& rect, int height, int width);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_PLAIN_IMAGE_H_
