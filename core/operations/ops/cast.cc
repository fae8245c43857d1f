// Casts values to another type, as tf.saturate_cast or tf.image.convert_image_dtype does.
#include "core/numeric/cast.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/numeric/normalise.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/unit_values.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Cuts the fraction off. Values outside of 0 to 255 become 0 or 255, and NaN becomes 0.
template <typename T>
uint8_t Saturate(T value) {
  if (!(value > 0)) return 0;
  return value >= 255 ? 255 : static_cast<uint8_t>(value);
}

class Cast final : public Operation {
 public:
  Cast(ElementType to, bool scale) : to_(to), scale_(scale) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    if (input.element != ElementType::kInt64) {
      SYSTOLE_RETURN_IF_ERROR(WantNumbers(input));
    } else if (scale_) {
      return absl::InvalidArgumentError("has scale, but gets int64 values, which are not pixels");
    }
    return ValueType{.element = to_, .shape = input.shape};
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    if (input.type.element == to_) return input;
    Value out = Value::Create(to_, input.type.shape);
    for (size_t i = 0; i < out.floats.size(); ++i) {
      if (input.type.element == ElementType::kInt64) {
        out.floats[i] = static_cast<float>(input.int64s[i]);
      } else {
        out.floats[i] = scale_ ? Uint8ToUnit(input.uint8s[i]) : static_cast<float>(input.uint8s[i]);
      }
    }
    for (size_t i = 0; i < out.uint8s.size(); ++i) {
      if (input.type.element == ElementType::kInt64) {
        out.uint8s[i] = Saturate(input.int64s[i]);
      } else {
        out.uint8s[i] = scale_ ? UnitToUint8(input.floats[i]) : Saturate(input.floats[i]);
      }
    }
    return out;
  }

  absl::StatusOr<Value> Run(Value input, const ExampleKey& example) const override {
    const ElementType from = input.type.element;
    if (from == to_ || from == ElementType::kInt64) return Apply(std::move(input), example);
    Value out = Value::Create(to_, input.type.shape);
    if (from == ElementType::kFloat32) {
      CutToUint8(input.floats, scale_ ? kUnitToUint8 : 1.0f, absl::MakeSpan(out.uint8s));
      return out;
    }
    const float scale = scale_ ? kUint8ToUnit : 1.0f;
    SYSTOLE_RETURN_IF_ERROR(NormaliseUint8(input.uint8s, 1,
                                           {.scale = absl::MakeConstSpan(&scale, 1)},
                                           PixelType::kFloat32, out.memory()));
    return out;
  }

  int RulesByValue() const override { return 1; }

 private:
  ElementType to_;
  bool scale_;
};

}  // namespace

OperationRow CastRow() {
  return {
      .kind = v1::Transform::kCast,
      .guide =
          {
              .summary =
                  "Casts values to another type; with scale, uint8 0 to 255 is float 0 to 1.",
              .example = "cast { dtype: FLOAT32 scale: true }",
              .tensorflow = "tf.saturate_cast, tf.image.convert_image_dtype, tf.cast",
              .torchvision = "ToDtype, ToTensor",
              .dali = "fn.cast",
              .parity = "exact; tf.cast differs for values that do not fit into uint8",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::Cast& cast = arguments.transform.cast();
        if (cast.dtype() != v1::UINT8 && cast.dtype() != v1::FLOAT32) {
          std::string seen = absl::StrCat("dtype ", static_cast<int>(cast.dtype()));
          if (v1::DataType_IsValid(cast.dtype())) {
            seen = absl::StrCat("dtype ", v1::DataType_Name(cast.dtype()));
          }
          if (cast.dtype() == v1::DATA_TYPE_UNSPECIFIED) seen = "no dtype";
          return absl::InvalidArgumentError(absl::StrCat(
              "has ", seen, ", want UINT8 or FLOAT32; for other types set the output's dtype"));
        }
        return std::make_unique<Cast>(
            cast.dtype() == v1::UINT8 ? ElementType::kUint8 : ElementType::kFloat32, cast.scale());
      },
  };
}

}  // namespace systole
