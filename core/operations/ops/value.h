// The input and output of operations: the values of one example, and their type.
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
  kBytes,  // A file or any other string of bytes, before it is decoded.
  kUint8,
  kFloat32,
  kInt64,
};

// "bytes", "uint8", ..
absl::string_view ElementTypeName(ElementType type);

// Bytes of one element; 1 for kBytes.
int64_t ElementBytes(ElementType type);

// The largest edge of an image that a spec may name, in pixels. A larger edge must be a mistake,
// and memory would be allocated for it. A decoded image may have larger edges.
inline constexpr int64_t kMaxImageEdge = 16384;

// A dimension that differs from example to example, such as height and width after decode_jpeg.
inline constexpr int64_t kAnySize = -1;

struct ValueType {
  ElementType element = ElementType::kBytes;
  std::vector<int64_t> shape;  // Row-major, without the batch. Images: [height, width, 1 or 3].

  // Whether every dimension is known.
  bool has_size() const;
  // The number of elements, and how many bytes they take. REQUIRES: has_size().
  int64_t num_elements() const;
  int64_t num_bytes() const;

  friend bool operator==(const ValueType&, const ValueType&) = default;
};

// Whether values of this type are a float32 image of 1 or 3 channels.
bool IsFloatImage(const ValueType& type);

// Each function returns InvalidArgument unless `type` is what the comment after the function says.
// The message is the end of a sentence that begins with a transform's name.
absl::Status WantNumbers(const ValueType& type);  // kUint8 or kFloat32.
absl::Status WantImage(const ValueType& type);    // Numbers, [height, width, 1 or 3].
absl::Status WantColour(const ValueType& type);   // An image of 3 channels.
absl::Status WantBytes(const ValueType& type);    // kBytes.
absl::Status WantInt64(const ValueType& type);    // kInt64.
// InvalidArgument unless each edge is 1 to kMaxImageEdge.
absl::Status WantEdges(int64_t height, int64_t width);
// InvalidArgument unless each offset is 0 to kMaxImageEdge - 1.
absl::Status WantOffsets(int64_t height, int64_t width);

// The most bytes of a value whose size becomes known only when its record is read.
inline constexpr int64_t kMaxValueBytes = int64_t{16} << 20;

// The values of one example. type.element says which of `bytes`, `uint8s`, `floats` and `int64s`
// holds them.
struct Value {
  ValueType type;           // has_size() is true, unless the element is kBytes.
  absl::string_view bytes;  // Borrowed.
  std::vector<uint8_t> uint8s;
  std::vector<float> floats;
  std::vector<int64_t> int64s;

  int64_t height() const { return type.shape[0]; }
  int64_t width() const { return type.shape[1]; }
  int64_t channels() const { return type.shape[2]; }

  // `uint8s` or `floats`, as bytes. REQUIRES: type.element is kUint8 or kFloat32.
  absl::Span<uint8_t> memory();
  absl::Span<const uint8_t> memory() const;

  // A value of zeros.
  static Value Create(ElementType element, std::vector<int64_t> shape);
};

// Call this before Create() for an image whose size became known only when its record was read.
//   ResourceExhausted  the image would take more than kMaxValueBytes.
absl::Status CheckValueBytes(ElementType element, int64_t height, int64_t width, int64_t channels);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_VALUE_H_
