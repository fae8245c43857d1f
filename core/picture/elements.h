// The values of a tensor in memory, of any element type and at any address.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_PICTURE_ELEMENTS_H_
#define SYSTOLE_CORE_PICTURE_ELEMENTS_H_

#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "core/batch/slice_layout.h"
#include "core/numeric/bf16.h"
#include "core/numeric/float16.h"
#include "core/tensor/dtype.h"

namespace systole {

template <typename T>
T LoadElement(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

inline bool IsInteger(DType dtype) { return !IsFloat(dtype); }

// REQUIRES: IsInteger(dtype).
inline int64_t IntegerAt(DType dtype, const uint8_t* at) {
  switch (dtype) {
    case DType::kInt32:
      return LoadElement<int32_t>(at);
    case DType::kInt64:
      return LoadElement<int64_t>(at);
    default:
      return *at;
  }
}

// The element at `at`. Exact, except for integers beyond 2^53.
inline double NumberAt(DType dtype, const uint8_t* at) {
  switch (dtype) {
    case DType::kFloat32:
      return static_cast<double>(LoadElement<float>(at));
    case DType::kBfloat16:
      return static_cast<double>(Bf16ToFloat(LoadElement<uint16_t>(at)));
    case DType::kFloat16:
      return static_cast<double>(Float16ToFloat(LoadElement<uint16_t>(at)));
    default:
      return static_cast<double>(IntegerAt(dtype, at));
  }
}

// Calls `visit(address)` for every element of the examples that are `valid`. `values` is where the
// tensor begins. A tiled tensor is read example by example. Any other tensor is read in the order
// of memory, because the elements of an example may be spread over the whole tensor.
// REQUIRES: `valid` has an entry for each example.
template <typename Visitor>
void ForEachValidElement(const SliceTensor& tensor, const uint8_t* values,
                         absl::Span<const uint8_t> valid, Visitor visit) {
  const int64_t element = DTypeBytes(tensor.spec.dtype);
  if (tensor.is_tiled()) {
    for (size_t slot = 0; slot < valid.size(); ++slot) {
      if (valid[slot] == 0) continue;
      tensor.ForEachPiece(static_cast<int64_t>(slot), [&](int64_t offset, int64_t bytes) {
        for (int64_t byte = 0; byte < bytes; byte += element) visit(values + offset + byte);
      });
    }
    return;
  }
  const ExamplePieces first = PiecesOf(tensor, 0);
  for (int64_t piece = 0; piece < first.count; ++piece) {
    const uint8_t* at = values + piece * first.stride;
    for (const uint8_t is_valid : valid) {
      for (int64_t byte = 0; is_valid != 0 && byte < first.bytes; byte += element) visit(at + byte);
      at += first.bytes;
    }
  }
}

}  // namespace systole

#endif  // SYSTOLE_CORE_PICTURE_ELEMENTS_H_
