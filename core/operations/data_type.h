// Facts about DataType: which types are floats, and the type of an output whose spec names none.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_DATA_TYPE_H_
#define SYSTOLE_CORE_OPERATIONS_DATA_TYPE_H_

#include "absl/strings/string_view.h"
#include "core/operations/ops/value.h"
#include "core/tensor/dtype.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// Whether `dtype` is a floating-point type.
inline bool IsFloat(v1::DataType dtype) {
  return dtype == v1::FLOAT32 || dtype == v1::BFLOAT16 || dtype == v1::FLOAT16;
}

// The floating-point types, for error messages.
inline constexpr absl::string_view kFloatNames = "FLOAT32, BFLOAT16 or FLOAT16";

// The dtype of an output for which the spec names no dtype, and whose values are of type `made`.
// REQUIRES: not kBytes.
inline v1::DataType DataTypeOf(ElementType made) {
  if (made == ElementType::kUint8) return v1::UINT8;
  return made == ElementType::kInt64 ? v1::INT64 : v1::FLOAT32;
}

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_DATA_TYPE_H_
