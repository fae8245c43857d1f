// bfloat16 as the upper half of a float's bits, held in a uint16_t. Two roundings, not to be mixed:
//   RoundToBf16       feeds: nearest even, subnormals kept (TensorFlow's cast)
//   RoundToBf16Flush  operands of a matrix unit: nearest even,
//                     every subnormal becomes a zero of its sign
//                     (what TPUs and VCVTNEPS2BF16 do)
// Both: overflow rounds to infinity, a NaN stays a NaN and is made quiet.
//
// Pure bit operations: the result does not depend on the CPU, the rounding mode or FTZ/DAZ.
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_NUMERIC_BF16_H_
#define SYSTOLE_CORE_NUMERIC_BF16_H_

#include <bit>
#include <cstdint>

#include "absl/types/span.h"

namespace systole {

inline uint16_t RoundToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>((bits >> 16) | 0x0040u);  // Rounding could carry a NaN into -0.
  }
  // Half of the dropped part, plus one more when the kept part is odd: ties go to even.
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline uint16_t RoundToBf16Flush(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7f800000u) == 0) {
    // The subnormality of the *input* decides: 0x007fffff gives 0, not the smallest normal number.
    return static_cast<uint16_t>((bits >> 16) & 0x8000u);
  }
  return RoundToBf16(value);
}

// Exact: every bf16 value is a float.
inline float Bf16ToFloat(uint16_t bf16) {
  return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16);
}

// The functions above for whole spans, vectorised. They give the same bits as those above, on every
// CPU. `out.size()` must equal `in.size()` (CHECK). In and out must not overlap.
void RoundToBf16(absl::Span<const float> in, absl::Span<uint16_t> out);
void RoundToBf16Flush(absl::Span<const float> in, absl::Span<uint16_t> out);
void Bf16ToFloat(absl::Span<const uint16_t> in, absl::Span<float> out);

}  // namespace systole

#endif  // SYSTOLE_CORE_NUMERIC_BF16_H_
