// Casts of floats without any other arithmetic, vectorised; the same bytes on every CPU.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_NUMERIC_CAST_H_
#define SYSTOLE_CORE_NUMERIC_CAST_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/numeric/normalise.h"

namespace systole {

// `out` has in.size() * PixelTypeBytes(type) bytes (CHECK) at any alignment. It does not overlap
// `in`.

// PixelType says how to round. Every NaN first becomes CanonicalNan(). -0 stays -0. (Normalisation
// with scale 1 and bias 0 would make it 0, see normalise.h.)
void CastFloats(absl::Span<const float> in, PixelType type, absl::Span<uint8_t> out);

// Multiplies by `factor` and cuts the fraction off. Results outside of 0 to 255 become 0 or 255,
// and NaN becomes 0.
void CutToUint8(absl::Span<const float> in, float factor, absl::Span<uint8_t> out);

}  // namespace systole

#endif  // SYSTOLE_CORE_NUMERIC_CAST_H_
