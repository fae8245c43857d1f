// Writes whole numbers as a tensor's elements.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_TENSOR_CAST_INT64S_H_
#define SYSTOLE_CORE_TENSOR_CAST_INT64S_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/tensor/dtype.h"

namespace systole {

// Writes `values` to `out` as kInt64 or kInt32. REQUIRES: `out` has exactly as many bytes as the
// values take in this type.
//   InvalidArgument  a value does not fit kInt32.
absl::Status CastInt64s(absl::Span<const int64_t> values, DType dtype, absl::Span<uint8_t> out);

}  // namespace systole

#endif  // SYSTOLE_CORE_TENSOR_CAST_INT64S_H_
