// Names, shapes and places of tensors, as a server describes them and a client reads them.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CORE_TENSOR_TENSOR_H_
#define SYSTOLE_CORE_TENSOR_TENSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/tensor/dtype.h"

namespace systole {

// A tensor's name, element type and shape, without its bytes. Row-major and dense.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kUint8;
  std::vector<int64_t> shape;  // Empty for a scalar.

  // Product of the shape (1 for a scalar). REQUIRES: no negative dimension, no overflow.
  int64_t num_elements() const;
  int64_t num_bytes() const { return num_elements() * DTypeBytes(dtype); }
  // Such as "image bfloat16[16,224,224,3]".
  std::string DebugString() const;

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// A dense row-major tensor in memory that belongs to another object.
struct TensorView {
  DType dtype = DType::kUint8;
  absl::Span<const int64_t> shape;
  const uint8_t* data = nullptr;

  int64_t num_elements() const;
  int64_t num_bytes() const { return num_elements() * DTypeBytes(dtype); }
  absl::Span<const uint8_t> bytes() const {
    return absl::MakeConstSpan(data, static_cast<size_t>(num_bytes()));
  }
  // The elements as T. REQUIRES: sizeof(T) == DTypeBytes(dtype); data aligned for T.
  template <typename T>
  absl::Span<const T> As() const {
    return absl::MakeConstSpan(reinterpret_cast<const T*>(data),
                               static_cast<size_t>(num_elements()));
  }
};

}  // namespace systole

#endif  // SYSTOLE_CORE_TENSOR_TENSOR_H_
