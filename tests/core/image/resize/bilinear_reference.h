// tf.image.resize (bilinear, v2) followed by flip, normalise and cast, one pixel at a time and
// straight from the definition. BilinearResizer must equal it byte for byte.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CORE_IMAGE_RESIZE_BILINEAR_REFERENCE_H_
#define SYSTOLE_TESTS_CORE_IMAGE_RESIZE_BILINEAR_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/image/resize/bilinear_resizer.h"
#include "core/image/window/crop.h"
#include "core/numeric/bf16.h"
#include "core/numeric/float16.h"

namespace systole {

inline float ReferenceLerp(float a, float b, float t) {
  const volatile float product = (b - a) * t;  // volatile forces rounding here.
  return a + product;
}

// `pixels` is [rows.pixels, columns.pixels, channels]. Returns the dense output, before any element
// stride.
inline std::vector<uint8_t> ReferenceResize(const std::vector<uint8_t>& pixels,
                                            const SourceSide& rows, const SourceSide& columns,
                                            bool flip, const BilinearResizerOptions& options) {
  const int channels = options.channels;
  const size_t value_bytes = PixelTypeBytes(options.type);
  std::vector<uint8_t> out(size_t{1} * options.height * options.width * channels * value_bytes);
  const float scale_y = rows.extent / static_cast<float>(options.height);
  const float scale_x = columns.extent / static_cast<float>(options.width);
  size_t at = 0;
  for (int y = 0; y < options.height; ++y) {
    const volatile float scaled_y = (static_cast<float>(y) + 0.5f) * scale_y;
    const float source_y = scaled_y + (rows.begin - 0.5f);
    const int y0 = std::max(static_cast<int>(std::floor(source_y)), 0);
    const int y1 = std::min(static_cast<int>(std::ceil(source_y)), rows.pixels - 1);
    const float ty = source_y - std::floor(source_y);
    for (int out_x = 0; out_x < options.width; ++out_x) {
      const int x = flip ? options.width - 1 - out_x : out_x;
      const volatile float scaled_x = (static_cast<float>(x) + 0.5f) * scale_x;
      const float source_x = scaled_x + (columns.begin - 0.5f);
      const int x0 = std::max(static_cast<int>(std::floor(source_x)), 0);
      const int x1 = std::min(static_cast<int>(std::ceil(source_x)), columns.pixels - 1);
      const float tx = source_x - std::floor(source_x);
      for (int c = 0; c < channels; ++c) {
        const auto pixel = [&](int row, int column) {
          return static_cast<float>(
              pixels[(static_cast<size_t>(row) * columns.pixels + column) * channels + c]);
        };
        const float top = ReferenceLerp(pixel(y0, x0), pixel(y0, x1), tx);
        const float bottom = ReferenceLerp(pixel(y1, x0), pixel(y1, x1), tx);
        const volatile float scaled =
            ReferenceLerp(top, bottom, ty) * options.scale[options.scale.size() == 1 ? 0 : c];
        const float value = scaled + options.bias[options.bias.size() == 1 ? 0 : c];
        const uint8_t u8 = RoundToUint8(value);
        const uint16_t half =
            options.type == PixelType::kFloat16 ? RoundToFloat16(value) : RoundToBf16(value);
        const void* from = value_bytes == 1   ? static_cast<const void*>(&u8)
                           : value_bytes == 2 ? static_cast<const void*>(&half)
                                              : static_cast<const void*>(&value);
        std::memcpy(out.data() + at, from, value_bytes);
        at += value_bytes;
      }
    }
  }
  return out;
}

// Resizes the whole image.
inline std::vector<uint8_t> ReferenceResize(const std::vector<uint8_t>& pixels, int in_height,
                                            int in_width, bool flip,
                                            const BilinearResizerOptions& options) {
  return ReferenceResize(pixels, WholeSide(in_height), WholeSide(in_width), flip, options);
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_IMAGE_RESIZE_BILINEAR_REFERENCE_H_
