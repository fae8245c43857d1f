// IEEE 754 binary16 (1 bit of sign, 5 of exponent, 10 of fraction), held in a uint16_t.
//
// RoundToFloat16: nearest, ties to even, as TensorFlow's cast; subnormals are kept, 65520 or more
// becomes infinity, and a NaN stays a NaN and is made quiet.
//
// The result does not depend on the CPU or on FTZ/DAZ. Thread-safe: no state.
#ifndef SYSTOLE_CORE_NUMERIC_FLOAT16_H_
#define SYSTOLE_CORE_NUMERIC_FLOAT16_H_

#include <bit>
#include <cstdint>

#include "absl/types/span.h"

namespace systole {

inline uint16_t RoundToFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t rounded;
  if (magnitude > 0x7f800000u) {
    rounded = ((magnitude >> 13) & 0x7fffu) | 0x7e00u;
  } else if (magnitude >= 0x47800000u) {  // 2^16.
    rounded = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14, the smallest normal number.
    // Half of the dropped part, plus one more when the kept part is odd: ties go to even. The
    // exponent's bias falls from 127 to 15.
    rounded = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  } else if (magnitude > 0x33000000u) {  // 2^-25, half of the smallest subnormal number.
    const uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t dropped_bits = 126u - (magnitude >> 23);
    const uint32_t kept = fraction >> dropped_bits;
    const uint32_t dropped = fraction & ((1u << dropped_bits) - 1);
    const uint32_t half = 1u << (dropped_bits - 1);
    rounded = kept + (dropped + (kept & 1u) > half ? 1 : 0);
  } else {
    rounded = 0;
  }
  return static_cast<uint16_t>(sign | rounded);
}

// Exact: every binary16 value is a float.
inline float Float16ToFloat(uint16_t float16) {
  const uint32_t sign = (float16 & 0x8000u) << 16;
  const uint32_t magnitude = (float16 & 0x7fffu) << 13;
  if (magnitude >= 0x0f800000u) return std::bit_cast<float>(sign | (magnitude + (224u << 23)));
  if (magnitude >= 0x00800000u) return std::bit_cast<float>(sign | (magnitude + (112u << 23)));
  // Subnormal: the bits become the float 2^-14 + value. Subtracting 2^-14 leaves the value.
  constexpr uint32_t kSmallest = 113u << 23;
  const float value = std::bit_cast<float>(magnitude + kSmallest) - std::bit_cast<float>(kSmallest);
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}

// The functions above over whole spans, vectorised; equal to the functions above bit for bit on
// every CPU. `out.size()` must equal `in.size()` (CHECK). In and out must not overlap.
void RoundToFloat16(absl::Span<const float> in, absl::Span<uint16_t> out);
void Float16ToFloat(absl::Span<const uint16_t> in, absl::Span<float> out);

}  // namespace systole

#endif  // SYSTOLE_CORE_NUMERIC_FLOAT16_H_
