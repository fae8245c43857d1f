// Computes with uint8 values as tf.image does: in float32, where 0 to 255 become 0 to 1
// (tf.image.convert_image_dtype with saturate=True).
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_UNIT_VALUES_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_UNIT_VALUES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/interrupt/interrupt.h"
#include "core/numeric/normalise.h"
#include "core/operations/ops/value.h"

namespace systole {

inline float Uint8ToUnit(uint8_t value) { return static_cast<float>(value) * kUint8ToUnit; }

inline constexpr float kUnitToUint8 = 255.5f;
// Multiplies by kUnitToUint8 and cuts the fraction off. Results outside of 0 to 255 become 0 or
// 255, and NaN becomes 0.
inline uint8_t UnitToUint8(float value) {
  const float scaled = value * kUnitToUint8;
  if (!(scaled > 0)) return 0;
  return scaled >= 255 ? 255 : static_cast<uint8_t>(scaled);
}

// A table with the result of `compute`, float -> float, for each uint8.
template <typename Compute>
std::array<uint8_t, 256> TableOf(const Compute& compute) {
  std::array<uint8_t, 256> table;
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = UnitToUint8(compute(Uint8ToUnit(static_cast<uint8_t>(i))));
  }
  return table;
}

// Applies `compute`, float -> float, to each number in `value`, whatever its type.
template <typename Compute>
void ApplyToEach(const Compute& compute, Value& value) {
  InParts(value.floats.size(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) value.floats[i] = compute(value.floats[i]);
  });
  if (value.uint8s.empty()) return;
  const std::array<uint8_t, 256> table = TableOf(compute);
  for (uint8_t& x : value.uint8s) x = table[x];
}

using Rgb = std::array<float, 3>;

// Applies `compute`, Rgb -> Rgb, to each pixel of an image of 3 channels, whatever its type.
template <typename Compute>
void ApplyToPixels(const Compute& compute, Value& image) {
  InParts(image.floats.size(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; i += 3) {
      float* const pixel = &image.floats[i];
      const Rgb made = compute(Rgb{pixel[0], pixel[1], pixel[2]});
      for (size_t c = 0; c < 3; ++c) pixel[c] = made[c];
    }
  });
  InParts(image.uint8s.size(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; i += 3) {
      uint8_t* const pixel = &image.uint8s[i];
      const Rgb made =
          compute(Rgb{Uint8ToUnit(pixel[0]), Uint8ToUnit(pixel[1]), Uint8ToUnit(pixel[2])});
      for (size_t c = 0; c < 3; ++c) pixel[c] = UnitToUint8(made[c]);
    }
  });
}

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_UNIT_VALUES_H_
