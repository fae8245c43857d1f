// Normalise and cast: out[i] = Cast(in[i] * scale[c] + bias[c]), c = i mod channels, for raw pixel
// or feature bytes with interleaved channels. The multiply and the add round separately in f32
// (never fused), so bytes are the same on every CPU.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_NUMERIC_NORMALISE_H_
#define SYSTOLE_CORE_NUMERIC_NORMALISE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace systole {

// What a pixel pipeline writes.
enum class PixelType {
  kUint8,    // Round half to even, then saturate to [0, 255]; NaN gives 0.
  kFloat32,  // As computed.
  kBfloat16  // RoundToBf16.
};

// Bytes of one value: 1, 4 or 2.
size_t PixelTypeBytes(PixelType type);

// Round half to even and saturate to [0, 255]; NaN gives 0.
uint8_t RoundToUint8(float value);

// Per-channel factors. One entry serves every channel.
struct Normalisation {
  // Defaults leave values as they are.
  absl::Span<const float> scale = kOne;
  absl::Span<const float> bias = kZero;

  static constexpr float kOne[1] = {1.0f};
  static constexpr float kZero[1] = {0.0f};
};

// TensorFlow's convert_image_dtype from uint8 to float multiplies by this; it does not divide.
inline constexpr float kUint8ToUnit = 1.0f / 255.0f;

// `in`: [n, channels] uint8, row-major. `out`: n * channels values of `type` in native byte order,
// so in.size() * PixelTypeBytes(type) bytes; any alignment.
//   InvalidArgument  in.size() not a multiple of channels, a scale or bias of neither 1 nor
//   `channels`
//                    entries, more than kMaxNormaliseChannels channels, or an out of another size.
inline constexpr int kMaxNormaliseChannels = 16;
absl::Status NormaliseUint8(absl::Span<const uint8_t> in, int channels,
                            const Normalisation& normalisation, PixelType type,
                            absl::Span<uint8_t> out);
absl::Status NormaliseFloat(absl::Span<const float> in, int channels,
                            const Normalisation& normalisation, PixelType type,
                            absl::Span<uint8_t> out);

}  // namespace systole

#endif  // SYSTOLE_CORE_NUMERIC_NORMALISE_H_
