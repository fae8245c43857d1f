// Replaces every NaN by the same NaN. Sign and payload of a NaN that arithmetic makes depend on the
// processor, and on the order in which a compiler puts the operands of a sum. A feed has the same
// bytes everywhere, so code replaces each NaN where its arithmetic ends.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_NUMERIC_CANONICAL_NAN_H_
#define SYSTOLE_CORE_NUMERIC_CANONICAL_NAN_H_

#include <bit>
#include <cstdint>

namespace systole {

// `x`, or the quiet NaN without sign and payload.
inline float CanonicalNan(float x) {
  return x == x ? x : std::bit_cast<float>(uint32_t{0x7fc00000});
}

}  // namespace systole

#endif  // SYSTOLE_CORE_NUMERIC_CANONICAL_NAN_H_
