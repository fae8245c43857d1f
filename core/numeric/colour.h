// Vectorised functions for the saturation, hue and brightness of RGB pixels. Their results are
// those of TensorFlow's AdjustSaturation, AdjustHue and rgb_to_grayscale, to the bit and on every
// CPU. saturation.cc, hue.cc and grayscale.cc in core/operations/ops compute the same results one
// pixel at a time.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_NUMERIC_COLOUR_H_
#define SYSTOLE_CORE_NUMERIC_COLOUR_H_

#include <cstdint>

#include "absl/types/span.h"

namespace systole {

// `pixels` are [n, 3]: red, green, blue. uint8 values are first multiplied by kUint8ToUnit, which
// gives 0 to 1. Their results are multiplied by 255.5, and the fraction is cut off. REQUIRES:
// pixels.size() % 3 == 0 (CHECK).

// Multiplies S of HSV by `factor`, then clamps it to 0 to 1. REQUIRES: factor >= 0.
void AdjustSaturation(float factor, absl::Span<float> pixels);
void AdjustSaturation(float factor, absl::Span<uint8_t> pixels);

// Turns H of HSV by `delta` of the circle. REQUIRES: -1 <= delta <= 1.
void AdjustHue(float delta, absl::Span<float> pixels);
void AdjustHue(float delta, absl::Span<uint8_t> pixels);

// Writes the brightness of each pixel `channels` times. REQUIRES: channels is 1 or 3, and the size
// of `out` is pixels.size() / 3 * channels (CHECK). `pixels` and `out` do not overlap.
void MakeGrey(absl::Span<const float> pixels, int channels, absl::Span<float> out);
void MakeGrey(absl::Span<const uint8_t> pixels, int channels, absl::Span<uint8_t> out);

}  // namespace systole

#endif  // SYSTOLE_CORE_NUMERIC_COLOUR_H_
