// tf.image.resize in each of its methods, for an image in memory, with the arithmetic of
// TensorFlow's CPU kernels: f32, every operation rounded, their order kept. So values are equal to
// the bit, but for Lanczos and the Gaussian (core/image/resize/sampling_spans.h says why).
//
// The fused pass has the default method alone (core/image/resize/bilinear_resizer.h). This is for
// all others. It is scalar code with tables for each size.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_IMAGE_RESIZE_RESAMPLER_H_
#define SYSTOLE_CORE_IMAGE_RESIZE_RESAMPLER_H_

#include <cstddef>
#include <cstdint>

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
  // Widens the kernel where the image shrinks. Not for kNearest and kArea.
  bool antialias = false;
  // false: TensorFlow 1's rule, output pixel i is taken at i * in / out. Only for kBilinear,
  // kNearest and kBicubic, without antialias.
  bool half_pixel_centres = true;

  friend bool operator==(const ResampleOptions&, const ResampleOptions&) = default;
};

// Pixels [height, width, channels] in memory, `row_values` values from row to row.
template <typename T>
struct PixelView {
  T* values = nullptr;
  int64_t row_values = 0;
  int height = 0;
  int width = 0;
  int channels = 0;

  T* row(int64_t y) const { return values + y * row_values; }
};

// Fills `out` from all of `in`, which has as many channels. T: uint8_t or float. Beside tables it
// takes memory for one row of `in`. REQUIRES: sizes of 1 to 65535, and options that fit each other;
// for Resample(), another method than kNearest.
template <typename T>
void Resample(const ResampleOptions& options, const PixelView<const T>& in,
              const PixelView<float>& out);

// kNearest: copies pixels as they are, of either type.
template <typename T>
void ResampleNearest(bool half_pixel_centres, const PixelView<const T>& in,
                     const PixelView<T>& out);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_RESIZE_RESAMPLER_H_
