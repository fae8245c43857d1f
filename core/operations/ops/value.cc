#include "core/operations/ops/value.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole {

absl::string_view ElementTypeName(ElementType type) {
  switch (type) {
    case ElementType::kBytes:
      return "bytes";
    case ElementType::kUint8:
      return "uint8";
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kInt64:
      return "int64";
  }
  return "";
}

int64_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return sizeof(float);
    case ElementType::kInt64:
      return sizeof(int64_t);
    case ElementType::kBytes:
    case ElementType::kUint8:
      break;
  }
  return 1;
}

bool ValueType::has_size() const {
  return std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size >= 0; });
}

int64_t ValueType::num_elements() const {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return elements;
}

int64_t ValueType::num_bytes() const { return num_elements() * ElementBytes(element); }

bool IsFloatImage(const ValueType& type) {
  return type.element == ElementType::kFloat32 && type.shape.size() == 3 &&
         (type.shape[2] == 1 || type.shape[2] == 3);
}

absl::Status WantNumbers(const ValueType& type) {
  switch (type.element) {
    case ElementType::kUint8:
    case ElementType::kFloat32:
      return absl::OkStatus();
    case ElementType::kBytes:
      return absl::InvalidArgumentError(
          "needs values, but gets bytes that nothing has decoded yet; begin with decode_jpeg, "
          "decode_png, decode_image or decode_raw");
    case ElementType::kInt64:
      break;
  }
  return absl::InvalidArgumentError(
      "needs pixels, raw bytes or a float feature, but gets int64; use one_hot or cast first");
}

absl::Status WantImage(const ValueType& type) {
  SYSTOLE_RETURN_IF_ERROR(WantNumbers(type));
  const std::vector<int64_t>& shape = type.shape;
  if (shape.size() == 3 && (shape[2] == 1 || shape[2] == 3) && shape[0] <= kMaxImageEdge &&
      shape[1] <= kMaxImageEdge) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "needs an image: a decoded file, or decode_raw with a shape of [height, width, 1 "
      "or 3] and edges of at most ",
      kMaxImageEdge));
}

absl::Status WantColour(const ValueType& type) {
  SYSTOLE_RETURN_IF_ERROR(WantImage(type));
  if (type.shape[2] == 3) return absl::OkStatus();
  return absl::InvalidArgumentError("needs images of 3 channels, but gets grey ones");
}

absl::Status WantInt64(const ValueType& type) {
  if (type.element == ElementType::kInt64) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("needs an int64 feature, but gets ", ElementTypeName(type.element)));
}

absl::Status WantBytes(const ValueType& type) {
  if (type.element == ElementType::kBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("needs a bytes feature as it is stored, but gets ",
                                                 ElementTypeName(type.element)));
}

absl::Status WantEdges(int64_t height, int64_t width) {
  if (height >= 1 && width >= 1 && height <= kMaxImageEdge && width <= kMaxImageEdge) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("has height: ", height, " and width: ", width,
                                                 ", want 1 to ", kMaxImageEdge, " each"));
}

absl::Status WantOffsets(int64_t height, int64_t width) {
  if (height >= 0 && width >= 0 && height < kMaxImageEdge && width < kMaxImageEdge) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("has offset_height: ", height,
                                                 " and offset_width: ", width, ", want 0 to ",
                                                 kMaxImageEdge - 1, " each"));
}

Value Value::Create(ElementType element, std::vector<int64_t> shape) {
  Value value;
  value.type = {.element = element, .shape = std::move(shape)};
  const auto elements = static_cast<size_t>(value.type.num_elements());
  if (element == ElementType::kUint8) value.uint8s.resize(elements);
  if (element == ElementType::kFloat32) value.floats.resize(elements);
  if (element == ElementType::kInt64) value.int64s.resize(elements);
  return value;
}

absl::Span<uint8_t> Value::memory() {
  if (type.element == ElementType::kUint8) return absl::MakeSpan(uint8s);
  return {reinterpret_cast<uint8_t*>(floats.data()), floats.size() * sizeof(float)};
}

absl::Span<const uint8_t> Value::memory() const { return const_cast<Value*>(this)->memory(); }

absl::Status CheckValueBytes(ElementType element, int64_t height, int64_t width, int64_t channels) {
  const int64_t bytes =
      ValueType{.element = element, .shape = {height, width, channels}}.num_bytes();
  if (bytes <= kMaxValueBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the image of ", height, " x ", width, " pixels takes ", bytes, " bytes as ",
                   ElementTypeName(element), ", want at most ", kMaxValueBytes,
                   " if a transform needs the whole image; crop or resize before it"));
}

}  // namespace systole
