// Element types of the tensors Systole feeds.
//
// Thread-safe: pure functions.
#ifndef SYSTOLE_CORE_TENSOR_DTYPE_H_
#define SYSTOLE_CORE_TENSOR_DTYPE_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace systole {

// The numbers are part of digests and of the wire format, so never change them.
enum class DType : uint8_t {
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 3,
  kFloat32 = 4,
  kBfloat16 = 5,  // Upper half of a float32, rounded to nearest even.
  kFloat16 = 6,   // IEEE 754 binary16, rounded to nearest even.
};

// Bytes of one element.
int64_t DTypeBytes(DType dtype);

// Whether `dtype` is float32, bfloat16 or float16. Values computed in float32 are fed as one of
// these types.
bool IsFloat(DType dtype);

// "uint8", "int32", "int64", "float32", "bfloat16", "float16".
absl::string_view DTypeName(DType dtype);

}  // namespace systole

#endif  // SYSTOLE_CORE_TENSOR_DTYPE_H_
