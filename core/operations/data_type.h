// What a spec's DataType means.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_DATA_TYPE_H_
#define SYSTOLE_CORE_OPERATIONS_DATA_TYPE_H_

#include "absl/strings/string_view.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// Whether `dtype` is a floating-point type.
inline bool IsFloat(v1::DataType dtype) {
  return dtype == v1::FLOAT32 || dtype == v1::BFLOAT16 || dtype == v1::FLOAT16;
}

// The floating-point types, for error messages.
inline constexpr absl::string_view kFloatNames = "FLOAT32, BFLOAT16 or FLOAT16";

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_DATA_TYPE_H_
