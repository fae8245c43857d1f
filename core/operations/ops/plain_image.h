// Crops, turns, pads and resizes an image. The functions with "Plainly" in their names are written
// in the obvious way, as references for Operation::Apply. ResizeFast(), ResampleFast() and
// ResampleRows() give the same bits faster, for Operation::Run.
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

// REQUIRES, for all functions: the image is kUint8 or kFloat32, and `rect` lies inside the image.
Value CropPlainly(const Value& image, const CropRect& rect);
Value MirrorPlainly(const Value& image);
Value TurnUpsideDownPlainly(const Value& image);
// MirrorPlainly() as a RowChange, for float images of type `image`.
RowChange MirroredRows(const ValueType& image);
// Rows become columns.
Value TransposePlainly(const Value& image);
// Rotates by `quarters` * 90 degrees, counter-clockwise. REQUIRES: quarters is 0 to 3.
Value RotatePlainly(const Value& image, int quarters);
// Copies `rect` of the image into a height x width image of zeros. The top left pixel of `rect`
// goes to row `y`, column `x`. REQUIRES: all of `rect` then lies inside the new image.
Value PlacePlainly(const Value& image, const CropRect& rect, int height, int width, int y, int x);

// Resizes `rect` of the image to [height, width] kFloat32, with the arithmetic of BilinearResizer
// (core/image/resize/bilinear_resizer.h).
Value ResizePlainly(const Value& image, const CropRect& rect, int height, int width);
// Resizes the part of the image that `rows` and `columns` name, with the same arithmetic. REQUIRES:
// rows.pixels is the image's height, columns.pixels its width.
Value ResizePlainly(const Value& image, const SourceSide& rows, const SourceSide& columns,
                    int height, int width);

// The most values that the first of a resize's two passes may make. It makes output rows x input
// columns x channels values. Without a limit, a short and very wide image could take minutes.
inline constexpr int64_t kMaxResampledElements = int64_t{64} << 20;

// Resizes `rect` of the image by any method (core/image/resize/resampler.h). Puts the result into
// the part `to` of an out_height x out_width image that is 0 elsewhere. The new image is kFloat32.
// With kNearest it has the type of `image` instead. REQUIRES: `to` lies inside the new image.
//   ResourceExhausted  the first pass would make more than kMaxResampledElements values.
absl::StatusOr<Value> ResamplePlainly(const Value& image, const CropRect& rect,
                                      const ResampleOptions& options, const CropRect& to,
                                      int out_height, int out_width);
// The type of ResamplePlainly() and of ResampleFast().
using ResampleFunction = decltype(&ResamplePlainly);

// ResizePlainly() and ResamplePlainly() with the same results, but faster: with FastResample()
// (core/image/resize/fast_resampler.h).
Value ResizeFast(const Value& image, const CropRect& rect, int height, int width);
absl::StatusOr<Value> ResampleFast(const Value& image, const CropRect& rect,
                                   const ResampleOptions& options, const CropRect& to,
                                   int out_height, int out_width);
// Resizes a whole uint8 image to height x width, as ResampleFast() does, but gives `take` a few
// rows of the result at a time. If `mirrored`, each row is from right to left. REQUIRES:
// GivesRows(options). Errors: those of ResamplePlainly().
absl::Status ResampleRows(const Value& image, const ResampleOptions& options, int height, int width,
                          bool mirrored, TakeRows take);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_PLAIN_IMAGE_H_
