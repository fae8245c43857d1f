// Normalise and cast: out[i] = Cast(in[i] * scale[c] + bias[c]), c = i mod channels, for raw pixels
// or features with interleaved channels. The product and the sum are each rounded to f32 (never
// fused), so the bytes are the same on every CPU.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_NUMERIC_NORMALISE_H_
#define SYSTOLE_CORE_NUMERIC_NORMALISE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/tensor/dtype.h"

namespace systole {

// The type of the values that a pixel pipeline writes.
enum class PixelType {
  kUint8,     // Round half to even, then saturate to [0, 255]; NaN gives 0.
  kFloat32,   // The value as it was computed.
  kBfloat16,  // RoundToBf16.
  kFloat16    // RoundToFloat16.
};

// The PixelType for values of `dtype`. REQUIRES: `dtype` is kUint8 or a type of floats.
inline PixelType PixelTypeOf(DType dtype) {
  if (dtype == DType::kFloat32) return PixelType::kFloat32;
  if (dtype == DType::kBfloat16) return PixelType::kBfloat16;
  return dtype == DType::kFloat16 ? PixelType::kFloat16 : PixelType::kUint8;
}

// Bytes of one value: 1, 4, 2 or 2.
size_t PixelTypeBytes(PixelType type);

// Round half to even and saturate to [0, 255]; NaN gives 0.
uint8_t RoundToUint8(float value);

// Per-channel factors. A span of one entry serves every channel.
struct Normalisation {
  // Defaults leave values as they are.
  absl::Span<const float> scale = kOne;
  absl::Span<const float> bias = kZero;

  static constexpr float kOne[1] = {1.0f};
  static constexpr float kZero[1] = {0.0f};
};

// Owned factors. `scale` and `bias` have an entry for each channel, or one entry for all channels.
struct NormaliseFactors {
  std::vector<float> scale;
  std::vector<float> bias;
};

// The factors that turn y = (x * scale - mean) / stddev into one multiplication and one addition:
// y = x * (scale / stddev) + (-mean / stddev). Each factor is rounded to float32 once. An empty
// span means a mean of 0 or a stddev of 1. A span of one value serves every channel.
//   InvalidArgument  a factor is not finite, or the factor of x is 0.
// REQUIRES: spans of more than one value are equally long.
absl::StatusOr<NormaliseFactors> FactorsOf(double scale, absl::Span<const double> mean,
                                           absl::Span<const double> stddev);

// TensorFlow's convert_image_dtype from uint8 to float multiplies by this number, and does not
// divide by 255.
inline constexpr float kUint8ToUnit = 1.0f / 255.0f;

// `in`: [n, channels] uint8, row-major. `out`: n * channels values of `type` in native byte order,
// so in.size() * PixelTypeBytes(type) bytes; any alignment.
//   InvalidArgument  in.size() is not a multiple of channels,
//                    scale or bias has neither 1 nor `channels` entries,
//                    more than kMaxNormaliseChannels channels, or `out` has another size.
inline constexpr int kMaxNormaliseChannels = 16;
absl::Status NormaliseUint8(absl::Span<const uint8_t> in, int channels,
                            const Normalisation& normalisation, PixelType type,
                            absl::Span<uint8_t> out);
absl::Status NormaliseFloat(absl::Span<const float> in, int channels,
                            const Normalisation& normalisation, PixelType type,
                            absl::Span<uint8_t> out);

// NormaliseUint8() and NormaliseFloat() with owned factors. There is one channel for each entry of
// factors.scale.
inline absl::Status NormaliseUint8(absl::Span<const uint8_t> in, const NormaliseFactors& factors,
                                   PixelType type, absl::Span<uint8_t> out) {
  return NormaliseUint8(in, static_cast<int>(factors.scale.size()),
                        {.scale = factors.scale, .bias = factors.bias}, type, out);
}
inline absl::Status NormaliseFloat(absl::Span<const float> in, const NormaliseFactors& factors,
                                   PixelType type, absl::Span<uint8_t> out) {
  return NormaliseFloat(in, static_cast<int>(factors.scale.size()),
                        {.scale = factors.scale, .bias = factors.bias}, type, out);
}

// Does what NormaliseUint8 does, for a tensor that comes in pieces. The tensor may be cut anywhere,
// and its channels need not be innermost. The cuts change no bit of the result.
class TensorNormaliser {
 public:
  // Value i of the tensor belongs to channel (i / inner) mod channels. `inner` is 1 for
  // [.., channels], and height * width for [batch, channels, height, width].
  //   InvalidArgument  as NormaliseUint8; inner < 1.
  static absl::StatusOr<TensorNormaliser> Create(int channels, int64_t inner,
                                                 const Normalisation& normalisation,
                                                 PixelType type);

  // Normalises the values first .. first + in.size() - 1 of the tensor and writes the results to
  // `out`: in.size() * PixelTypeBytes(type) bytes at any alignment, which must not overlap `in`.
  void Apply(int64_t first, absl::Span<const uint8_t> in, uint8_t* out) const;

 private:
  explicit TensorNormaliser(PixelType type) : type_(type) {}
  void AddPattern(const Normalisation& normalisation, int channels, int64_t inner);

  PixelType type_;
  size_t period_ = 0;
  // A pattern has the factors of consecutive values. inner_ = 0: one pattern covers all channels.
  // Otherwise each channel has its own pattern, and inner_ is the number of consecutive values that
  // belong to one channel.
  int64_t inner_ = 0;
  // Each pattern has period_ entries. The first of them follow once more at the end.
  std::vector<NormaliseFactors> patterns_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_NUMERIC_NORMALISE_H_
