// All methods of tf.image.resize, for an image in memory. The arithmetic is that of TensorFlow's
// CPU kernels: f32, every operation rounded, in the same order. So values are equal to the bit,
// except for Lanczos and the Gaussian (core/image/resize/sampling_spans.h says why).
//
// BilinearResizer (core/image/resize/bilinear_resizer.h), which also normalises and casts, has only
// the default method. This file has all methods, as scalar code with tables for each size. It
// defines which bits are right. core/image/resize/fast_resampler.h makes the same bits faster.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_IMAGE_RESIZE_RESAMPLER_H_
#define SYSTOLE_CORE_IMAGE_RESIZE_RESAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/image/resize/sampling_spans.h"

namespace systole {

enum class ResampleMethod {
  kBilinear,
  kNearest,
  kBicubic,
  kArea,
  kLanczos3,
  kLanczos5,
  kGaussian,
  kMitchellCubic,
};

struct ResampleOptions {
  ResampleMethod method = ResampleMethod::kBilinear;
  // Widens the kernel if the image shrinks. For kNearest and kArea this has no effect.
  bool antialias = false;
  // False: output pixel i is taken at i * in / out, which is TensorFlow 1's rule. Only for
  // kBilinear, kNearest and kBicubic, without antialias.
  bool half_pixel_centres = true;

  friend bool operator==(const ResampleOptions&, const ResampleOptions&) = default;
};

// The kernel of methods that resize by SamplingSpans; nullopt for other methods.
std::optional<SamplingKernel> SpansKernel(const ResampleOptions& options);

// Pixels [height, width, channels] in memory. A row begins `row_values` values after the previous
// row.
template <typename T>
struct PixelView {
  T* values = nullptr;
  int64_t row_values = 0;
  int height = 0;
  int width = 0;
  int channels = 0;

  T* row(int64_t y) const { return values + y * row_values; }
};

// Fills `out` with the resized image `in`. `in` and `out` have the same number of channels. T is
// uint8_t or float. Takes memory for tables and for one row of `in`. REQUIRES: sizes of 1 to 65535,
// options that fit each other, and a method other than kNearest.
template <typename T>
void Resample(const ResampleOptions& options, const PixelView<const T>& in,
              const PixelView<float>& out);

// Resamples by kNearest, which copies pixels as they are. T and REQUIRES: as for Resample().
template <typename T>
void ResampleNearest(bool half_pixel_centres, const PixelView<const T>& in,
                     const PixelView<T>& out);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_RESIZE_RESAMPLER_H_
