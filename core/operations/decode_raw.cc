// Bytes as they are -> uint8 of the output's shape.
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/operations/operation_rows.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class DecodeRaw final : public Operation {
 public:
  explicit DecodeRaw(std::vector<int64_t> shape) : shape_(std::move(shape)) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantBytes(input));
    return ValueType{.element = ElementType::kUint8, .shape = shape_};
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    Value value;
    value.type = {.element = ElementType::kUint8, .shape = shape_};
    if (static_cast<int64_t>(input.bytes.size()) != value.type.num_elements()) {
      return absl::DataLossError(absl::StrCat(input.bytes.size(), " bytes, want ",
                                              value.type.num_elements(), " by the spec's shape"));
    }
    value.uint8s.assign(input.bytes.begin(), input.bytes.end());
    return value;
  }

  std::vector<OperationPart> Parts() const override { return {DecodeRawPart{}}; }

 private:
  std::vector<int64_t> shape_;
};

}  // namespace

OperationRow DecodeRawRow() {
  return {
      .kind = v1::Transform::kDecodeRaw,
      .guide =
          {
              .summary = "Bytes as they are, as uint8 values.",
              .example = "decode_raw {}",
              .tensorflow = "tf.io.decode_raw",
              .dali = "fn.reinterpret",
              .parity = "exact",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        if (arguments.stored_shape.empty()) {
          return absl::InvalidArgumentError("wants the shape of one example, such as shape: 784");
        }
        return std::make_unique<DecodeRaw>(
            std::vector<int64_t>(arguments.stored_shape.begin(), arguments.stored_shape.end()));
      },
  };
}

}  // namespace systole
