#include "core/image/png/png_unfilter.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/image/png/png_unfilter.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "hwy/highway.h"

#ifndef SYSTOLE_CORE_IMAGE_PNG_PNG_UNFILTER_CC_ONCE_
#define SYSTOLE_CORE_IMAGE_PNG_PNG_UNFILTER_CC_ONCE_
namespace systole {
namespace {

enum Filter : uint8_t { kNone, kSub, kUp, kAverage, kPaeth };

// The Paeth predictor is whichever of left, above and above left is nearest to left + above - above
// left. Let low be the smaller and high the larger of left and above. Then the predictor is
//   low         if high <= threshold := 3 * above_left - low - high,
//   high        if threshold <= low,
//   above_left  otherwise.
// This form needs no absolute values. The filtered byte can be added to all three values before the
// predictor is known.
inline int Paeth(int left, int above, int above_left) {
  const int low = std::min(left, above), high = std::max(left, above);
  const int threshold = 3 * above_left - left - above;
  const int not_high = high > threshold ? above_left : low;
  return threshold > low ? not_high : high;
}

// Adds predict(left, above, above_left) to each byte. The three arguments are the bytes at the same
// place of the neighbouring pixels.
template <class Predict>
inline void AddPredicted(uint8_t* row, const uint8_t* above, size_t row_bytes, size_t pixel_bytes,
                         Predict predict) {
  for (size_t byte = 0; byte < pixel_bytes; ++byte) {
    int left = 0, above_left = 0;
    for (size_t i = byte; i < row_bytes; i += pixel_bytes) {
      left = static_cast<uint8_t>(row[i] + predict(left, int{above[i]}, above_left));
      above_left = above[i];
      row[i] = static_cast<uint8_t>(left);
    }
  }
}

// Unfilters one row, with pixels of any size. REQUIRES: the filter looks to the left.
inline void UnfilterAnyRow(Filter filter, uint8_t* row, const uint8_t* above, size_t row_bytes,
                           size_t pixel_bytes) {
  if (filter == kSub) {
    AddPredicted(row, above, row_bytes, pixel_bytes, [](int left, int, int) { return left; });
  } else if (filter == kAverage) {
    AddPredicted(row, above, row_bytes, pixel_bytes,
                 [](int left, int up, int) { return (left + up) / 2; });
  } else {
    AddPredicted(row, above, row_bytes, pixel_bytes, Paeth);
  }
}

}  // namespace
}  // namespace systole
#endif  // SYSTOLE_CORE_IMAGE_PNG_PNG_UNFILTER_CC_ONCE_

HWY_BEFORE_NAMESPACE();
namespace systole {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void UnfilterUp(uint8_t* row, const uint8_t* above, size_t row_bytes) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= row_bytes; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, row + i), hn::LoadU(d, above + i)), d, row + i);
  }
  for (; i < row_bytes; ++i) row[i] = static_cast<uint8_t>(row[i] + above[i]);
}

#if HWY_TARGET != HWY_SCALAR
using Pixel = hn::FixedTag<uint8_t, 4>;
using WidePixel = hn::FixedTag<int16_t, 4>;
using PixelVector = hn::Vec<Pixel>;
using WideVector = hn::Vec<WidePixel>;

// Sets each pixel of 1 to 4 bytes to unfilter(filtered, above). A vector has 4 bytes. If a pixel
// has fewer bytes, the other bytes of the result are not used.
template <size_t kPixelBytes, class Unfilter>
HWY_INLINE void ForEachPixel(uint8_t* row, const uint8_t* above, size_t row_bytes,
                             Unfilter unfilter) {
  const Pixel d;
  PixelVector filtered = hn::LoadU(d, row);
  for (size_t i = 0;; i += kPixelBytes) {
    const PixelVector pixel = unfilter(filtered, hn::LoadU(d, above + i));
    const bool is_last = i + kPixelBytes == row_bytes;
    // For a pixel of three bytes, a store of four bytes is faster than a store of three. The store
    // of four bytes overwrites a byte of the next pixel. So the next pixel is loaded before the
    // store.
    if (!is_last) filtered = hn::LoadU(d, row + i + kPixelBytes);
    if (kPixelBytes >= 3 && !is_last) {
      hn::StoreU(pixel, d, row + i);
    } else {
      uint8_t bytes[4];
      hn::StoreU(pixel, d, bytes);
      std::memcpy(row + i, bytes, kPixelBytes);
    }
    if (is_last) return;
  }
}

// Each pixel needs the pixel before it. So the speed depends on how many instructions must run one
// after the other between two values of `left`.
template <size_t kPixelBytes>
HWY_INLINE void UnfilterPixels(Filter filter, uint8_t* row, const uint8_t* above,
                               size_t row_bytes) {
  const Pixel d;
  const WidePixel dw;
  if (filter == kSub) {
    PixelVector left = hn::Zero(d);
    ForEachPixel<kPixelBytes>(row, above, row_bytes,
                              [&](PixelVector filtered, PixelVector) HWY_ATTR {
                                left = hn::Add(filtered, left);
                                return left;
                              });
  } else if (filter == kAverage) {
    // The filter's average is rounded down, but the instruction (AverageRound) rounds up. With ~x =
    // 255 - x, the average that is rounded down is ~AverageRound(~left, ~above).
    PixelVector not_left = hn::Not(hn::Zero(d));
    ForEachPixel<kPixelBytes>(
        row, above, row_bytes, [&](PixelVector filtered, PixelVector up) HWY_ATTR {
          not_left = hn::Sub(hn::AverageRound(not_left, hn::Not(up)), filtered);
          return hn::Not(not_left);
        });
  } else {
    const hn::Repartition<uint8_t, WidePixel> bytes;
    const auto add_bytes = [&](WideVector a, WideVector b) HWY_ATTR {  // Upper bytes are 0.
      return hn::BitCast(dw, hn::Add(hn::BitCast(bytes, a), hn::BitCast(bytes, b)));
    };
    WideVector left = hn::Zero(dw), above_left = hn::Zero(dw);
    ForEachPixel<kPixelBytes>(
        row, above, row_bytes, [&](PixelVector filtered, PixelVector above_pixel) HWY_ATTR {
          const WideVector up = hn::PromoteTo(dw, above_pixel);
          const WideVector residue = hn::PromoteTo(dw, filtered);
          const WideVector twice = hn::Add(above_left, above_left);
          const WideVector threshold = hn::Sub(hn::Sub(hn::Add(twice, above_left), up), left);
          const WideVector low = hn::Min(left, up), high = hn::Max(left, up);
          const WideVector if_low = add_bytes(low, residue);
          const WideVector if_high = add_bytes(high, residue);
          const WideVector if_above_left = add_bytes(above_left, residue);
          left = hn::IfThenElse(hn::Gt(high, threshold), if_above_left, if_low);
          left = hn::IfThenElse(hn::Gt(threshold, low), left, if_high);
          above_left = up;
          return hn::DemoteTo(d, left);
        });
  }
}
#endif

bool UnfilterRowsKernel(uint8_t* rows, size_t count, size_t row_bytes, size_t pixel_bytes) {
  for (; count > 0; --count, rows += row_bytes + 1) {
    if (*rows > kPaeth) return false;
    const auto filter = static_cast<Filter>(*rows);
    uint8_t* const row = rows + 1;
    const uint8_t* const above = rows - row_bytes;
    if (filter == kNone) continue;
    if (filter == kUp) {
      UnfilterUp(row, above, row_bytes);
#if HWY_TARGET != HWY_SCALAR
    } else if (pixel_bytes == 1) {
      UnfilterPixels<1>(filter, row, above, row_bytes);
    } else if (pixel_bytes == 2) {
      UnfilterPixels<2>(filter, row, above, row_bytes);
    } else if (pixel_bytes == 3) {
      UnfilterPixels<3>(filter, row, above, row_bytes);
    } else if (pixel_bytes == 4) {
      UnfilterPixels<4>(filter, row, above, row_bytes);
#endif
    } else {
      UnfilterAnyRow(filter, row, above, row_bytes, pixel_bytes);
    }
  }
  return true;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace systole
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole {
namespace {

HWY_EXPORT(UnfilterRowsKernel);

}  // namespace

bool UnfilterRows(uint8_t* rows, size_t count, size_t row_bytes, size_t pixel_bytes) {
  return HWY_DYNAMIC_DISPATCH(UnfilterRowsKernel)(rows, count, row_bytes, pixel_bytes);
}

}  // namespace systole
#endif  // HWY_ONCE
