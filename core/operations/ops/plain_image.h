// Crops, turns, pads and resizes an image. The functions are written in the obvious way, because
// operations use them as references. ResizeFast(), ResampleFast() and ResampleRows() give the same
// bits faster, for Operation::Run.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_PLAIN_IMAGE_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_PLAIN_IMAGE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/image/resize/fast_resampler.h"
#include "core/image/resize/resampler.h"
#include "core/image/window/crop.h"
#include "core/operations/ops/row_change.h"
#include "core/operations/ops/value.h"

namespace systole {

// All functions take images of kUint8 or kFloat32. `rect` lies inside the image.
Value CropPlainly(const Value& image, const CropRect& rect);
Value MirrorPlainly(const Value& image);
Value TurnUpsideDownPlainly(const Value& image);
// The change that MirrorPlainly makes, for float images of type `image`.
RowChange MirroredRows(const ValueType& image);
// Rows become columns.
Value TransposePlainly(const Value& image);
// Rotates by `quarters` * 90 degrees, counter-clockwise. REQUIRES: quarters is 0 to 3.
Value RotatePlainly(const Value& image, int quarters);
// Puts `rect` of the image into a height x width image of zeros. The first pixel of `rect` comes to
// (y, x). REQUIRES: `rect` fits there.
Value PlacePlainly(const Value& image, const CropRect& rect, int height, int width, int y, int x);

// Resizes `rect` of the image to [height, width] kFloat32, with the arithmetic of BilinearResizer
// (core/image/resize/bilinear_resizer.h).
Value ResizePlainly(const Value& image, const CropRect& rect, int height, int width);
// Resizes the part of the image that `rows` and `columns` name, in the same way. REQUIRES: their
// `pixels` are the image's height and width.
Value ResizePlainly(const Value& image, const SourceSide& rows, const SourceSide& columns,
                    int height, int width);

// The most values that the first pass of a resize may make for the second pass. The rows of the
// first pass are as wide as the input. The time grows with the number of these values. Without a
// limit, a short and very wide image could take minutes.
inline constexpr int64_t kMaxResampledElements = int64_t{64} << 20;

// Resizes `rect` of the image by any method (core/image/resize/resampler.h), to the part `to` of an
// out_height x out_width image that is 0 elsewhere. The result is kFloat32, or with kNearest has
// the image's type. REQUIRES: `to` lies inside the result.
//   ResourceExhausted  more than kMaxResampledElements.
absl::StatusOr<Value> ResamplePlainly(const Value& image, const CropRect& rect,
                                      const ResampleOptions& options, const CropRect& to,
                                      int out_height, int out_width);
// ResamplePlainly() or ResampleFast().
using ResampleFunction = decltype(&ResamplePlainly);

// ResizeFast() makes the values of ResizePlainly(), and ResampleFast() those of ResamplePlainly().
// Both use FastResample() (core/image/resize/fast_resampler.h).
Value ResizeFast(const Value& image, const CropRect& rect, int height, int width);
absl::StatusOr<Value> ResampleFast(const Value& image, const CropRect& rect,
                                   const ResampleOptions& options, const CropRect& to,
                                   int out_height, int out_width);
// ResampleFast() of a whole image of uint8 to height x width, row by row. REQUIRES: GivesRows().
// Errors: those of ResamplePlainly().
absl::Status ResampleRows(const Value& image, const ResampleOptions& options, int height, int width,
                          bool mirrored, TakeRows take);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_PLAIN_IMAGE_H_
