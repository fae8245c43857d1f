// What operations take and give: the values of one example, and their type.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_VALUE_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_VALUE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace systole {

enum class ElementType {
  kBytes,  // A file or any other string of bytes, before a decode says what it holds.
  kUint8,
  kFloat32,
  kInt64,
};

// "bytes", "uint8", ..
absl::string_view ElementTypeName(ElementType type);

// Bytes of one element; 1 for kBytes.
int64_t ElementBytes(ElementType type);

// Largest edge of an image. Larger ones are mistakes, and allocations follow from it.
inline constexpr int64_t kMaxImageEdge = 16384;

// A dimension that differs from example to example: height and width after decode_jpeg.
inline constexpr int64_t kAnySize = -1;

struct ValueType {
  ElementType element = ElementType::kBytes;
  std::vector<int64_t> shape;  // Of one example, row-major. Images: [height, width, 1 or 3].

  // Whether every dimension is known.
  bool has_size() const;
  // Elements, and bytes of them. REQUIRES: has_size().
  int64_t num_elements() const;
  int64_t num_bytes() const;

  friend bool operator==(const ValueType&, const ValueType&) = default;
};

// InvalidArgument, as the end of a sentence that names a transform, unless `type` is ..
absl::Status WantNumbers(const ValueType& type);  // .. of kUint8 or kFloat32.
absl::Status WantImage(const ValueType& type);    // .. that and [height, width, 1 or 3].
absl::Status WantColour(const ValueType& type);   // .. that with 3 channels.
absl::Status WantBytes(const ValueType& type);    // .. kBytes.
absl::Status WantInt64(const ValueType& type);    // .. kInt64.
// InvalidArgument unless both are edges that an image can have.
absl::Status WantEdges(int64_t height, int64_t width);
// InvalidArgument unless both are places that a pixel of an image can have.
absl::Status WantOffsets(int64_t height, int64_t width);

// Most bytes of a value whose size only the record tells.
inline constexpr int64_t kMaxValueBytes = int64_t{16} << 20;

// The values of one example. Of the four holders only the one for type.element is used.
struct Value {
  ValueType type;           // has_size(), but for kBytes.
  absl::string_view bytes;  // Borrowed.
  std::vector<uint8_t> uint8s;
  std::vector<float> floats;
  std::vector<int64_t> int64s;

  int64_t height() const { return type.shape[0]; }
  int64_t width() const { return type.shape[1]; }
  int64_t channels() const { return type.shape[2]; }

  // Zeros.
  static Value Create(ElementType element, std::vector<int64_t> shape);
};

// Checks the size of an image before Create(). The record tells that size.
//   ResourceExhausted  it would take more than kMaxValueBytes.
absl::Status CheckValueBytes(ElementType element, int64_t height, int64_t width, int64_t channels);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_VALUE_H_
