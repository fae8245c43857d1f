// Tables for a resize that makes an output pixel from two or four input pixels in each direction:
// which pixels, and with which weights. This is what TensorFlow's kernels of ResizeBilinear and
// ResizeBicubic compute, in f32 and in the order of these kernels.
// core/image/resize/sampling_spans.h has the tables of wider kernels.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_IMAGE_RESIZE_SAMPLING_TAPS_H_
#define SYSTOLE_CORE_IMAGE_RESIZE_SAMPLING_TAPS_H_

#include <array>
#include <cstdint>
#include <vector>

namespace systole {

// Input pixels for each output pixel.
inline float SourceScale(int in, int out) {
  return static_cast<float>(in) / static_cast<float>(out);
}

// Bilinear: the two pixels around an output pixel.
struct LinearTap {
  int64_t lower = 0;
  int64_t upper = 0;
  float weight = 0;  // The weight of `upper`.
};

// Bicubic: the four pixels around an output pixel.
struct CubicTap {
  // The first of the four pixels. It may lie outside of the image.
  int64_t first = 0;
  // The pixels that are read: first, first + 1, .., each moved to the edge if it lies outside.
  std::array<int64_t, 4> places = {};
  std::array<float, 4> weights = {};
};

// The tables for `out` pixels from `in` pixels, 1 to 65535 each. With half-pixel centres, output
// pixel i is taken at (i + 0.5) * in / out - 0.5; without them, at i * in / out.
std::vector<LinearTap> MakeLinearTaps(bool half_pixel_centres, int in, int out);
std::vector<CubicTap> MakeCubicTaps(bool half_pixel_centres, int in, int out);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_RESIZE_SAMPLING_TAPS_H_
