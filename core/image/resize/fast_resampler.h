// Resample() (core/image/resize/resampler.h) several times faster, with the same bits. Each value
// is made by the same operations in the same order, but many values at a time.
//   antialias, lanczos, ..  the rows under the kernel are summed to a line. Then columns of the
//                           line are summed to an output row.
//   bicubic                 the same, with four rows and four columns
//   bilinear                the columns of a row are interpolated to a line. Then two lines are
//                           interpolated to an output row. The last two lines are kept.
// Resample() does kArea.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_IMAGE_RESIZE_FAST_RESAMPLER_H_
#define SYSTOLE_CORE_IMAGE_RESIZE_FAST_RESAMPLER_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "core/image/resize/resampler.h"

namespace systole {

// T, arguments and REQUIRES: as for Resample(). Takes memory for tables, one row of `in` and two
// rows of `out`.
template <typename T>
void FastResample(const ResampleOptions& options, const PixelView<const T>& in,
                  const PixelView<float>& out);

// Gets rows [first, first + count) of a result: [count, width, channels]. `rows` is valid during
// the call.
using TakeRows = absl::FunctionRef<void(int first, int count, const float* rows)>;

// Makes the rows of a height x width result of FastResample(), and gives them to `take` in order.
// Holds only a few rows at a time. If `mirrored`, each row is from right to left. If the thread is
// interrupted, `take` does not get the last rows. REQUIRES: as for Resample(), and GivesRows().
void FastResampleRows(const ResampleOptions& options, const PixelView<const uint8_t>& in,
                      int height, int width, bool mirrored, TakeRows take);
// Whether FastResampleRows() supports the method: true for all methods except kArea and kNearest.
bool GivesRows(const ResampleOptions& options);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_RESIZE_FAST_RESAMPLER_H_
