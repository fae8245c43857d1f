// Takes bytes as they are, as values of the output's shape.
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/memory/little_endian.h"
#include "core/operations/ops/operation_rows.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class DecodeRaw final : public Operation {
 public:
  DecodeRaw(std::vector<int64_t> shape, v1::DecodeRaw::Stored stored)
      : shape_(std::move(shape)), stored_(stored) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantBytes(input));
    return ValueType{.element = Made(), .shape = shape_};
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    const int64_t want = *InputBytes();
    if (static_cast<int64_t>(input.bytes.size()) != want) {
      return absl::DataLossError(
          absl::StrCat(input.bytes.size(), " bytes, want ", want, " by the spec's shape"));
    }
    Value value = Value::Create(Made(), shape_);
    switch (stored_) {
      case v1::DecodeRaw::UINT16:
        for (size_t i = 0; i < value.int64s.size(); ++i) {
          value.int64s[i] = LoadU16Le(&input.bytes[2 * i]);
        }
        break;
      case v1::DecodeRaw::FLOAT32:
        std::memcpy(value.floats.data(), input.bytes.data(), input.bytes.size());
        break;
      default:
        value.uint8s.assign(input.bytes.begin(), input.bytes.end());
    }
    return value;
  }

  std::optional<int64_t> InputBytes() const override {
    return ValueType{.element = Made(), .shape = shape_}.num_elements() * StoredBytes();
  }

  std::vector<OperationPart> Parts() const override {
    if (stored_ != v1::DecodeRaw::UINT8) return {};
    return {DecodeRawPart{}};
  }

 private:
  ElementType Made() const {
    if (stored_ == v1::DecodeRaw::UINT16) return ElementType::kInt64;
    return stored_ == v1::DecodeRaw::FLOAT32 ? ElementType::kFloat32 : ElementType::kUint8;
  }
  int64_t StoredBytes() const {
    if (stored_ == v1::DecodeRaw::UINT16) return 2;
    return stored_ == v1::DecodeRaw::FLOAT32 ? 4 : 1;
  }

  const std::vector<int64_t> shape_;
  const v1::DecodeRaw::Stored stored_;
};

}  // namespace

OperationRow DecodeRawRow() {
  return {
      .kind = v1::Transform::kDecodeRaw,
      .guide =
          {
              .summary = "Takes bytes as they are, as uint8, uint16 or float32 values.",
              .example = "decode_raw {}",
              .tensorflow = "tf.io.decode_raw",
              .dali = "fn.reinterpret",
              .parity =
                  "exact for uint8, uint16 (as int64) and float32, least significant byte first",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        if (arguments.stored_shape.empty()) {
          return absl::InvalidArgumentError("needs the shape of one example, such as shape: 784");
        }
        const v1::DecodeRaw::Stored stored = arguments.transform.decode_raw().stored();
        if (!v1::DecodeRaw::Stored_IsValid(stored)) {
          return absl::InvalidArgumentError(absl::StrCat("has stored ", static_cast<int>(stored),
                                                         ", want UINT8, UINT16 or FLOAT32"));
        }
        return std::make_unique<DecodeRaw>(
            std::vector<int64_t>(arguments.stored_shape.begin(), arguments.stored_shape.end()),
            stored);
      },
  };
}

}  // namespace systole
