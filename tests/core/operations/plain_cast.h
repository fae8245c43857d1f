// A simple reference of an output's cast, which casts one value at a time. Tests compare
// LoweredProgram's casts with it.
#ifndef SYSTOLE_TESTS_CORE_OPERATIONS_PLAIN_CAST_H_
#define SYSTOLE_TESTS_CORE_OPERATIONS_PLAIN_CAST_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "core/numeric/bf16.h"
#include "core/numeric/canonical_nan.h"
#include "core/numeric/float16.h"
#include "core/numeric/normalise.h"
#include "core/operations/ops/value.h"
#include "core/status/check.h"
#include "core/tensor/dtype.h"

namespace systole {

// Writes `value`, which is uint8 or float32, to `out`. For kUint8, values are rounded half to even
// and saturated. For a floating-point `dtype`, each NaN becomes CanonicalNan(). REQUIRES: `out` has
// one element of `dtype` for each element of `value`.
inline void CastPlainly(const Value& value, DType dtype, absl::Span<uint8_t> out) {
  const bool is_uint8 = value.type.element == ElementType::kUint8;
  const size_t count = is_uint8 ? value.uint8s.size() : value.floats.size();
  SYSTOLE_CHECK(out.size() == count * static_cast<size_t>(DTypeBytes(dtype)));
  for (size_t i = 0; i < count; ++i) {
    const float x = is_uint8 ? static_cast<float>(value.uint8s[i]) : CanonicalNan(value.floats[i]);
    if (dtype == DType::kFloat32) {
      std::memcpy(&out[i * sizeof(x)], &x, sizeof(x));
    } else if (IsFloat(dtype)) {
      const uint16_t rounded = dtype == DType::kFloat16 ? RoundToFloat16(x) : RoundToBf16(x);
      std::memcpy(&out[i * sizeof(rounded)], &rounded, sizeof(rounded));
    } else {
      out[i] = RoundToUint8(x);
    }
  }
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_OPERATIONS_PLAIN_CAST_H_
