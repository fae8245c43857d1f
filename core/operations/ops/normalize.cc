// Computes x * factor + addend in each channel. core/numeric/normalise.h has the arithmetic.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/numeric/normalise.h"
#include "core/operations/ops/operation_rows.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class Normalize final : public Operation {
 public:
  // `mean` is the number of means in the spec, and `stddev` is the number of deviations.
  Normalize(NormaliseFactors factors, int mean, int stddev)
      : factors_(std::move(factors)), mean_(mean), stddev_(stddev) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantNumbers(input));
    // The spec has one value, or one for each channel. Channels are the last dimension.
    const int64_t channels = input.shape.empty() ? 1 : input.shape.back();
    for (const auto& [field, count] : {std::pair("mean", mean_), std::pair("stddev", stddev_)}) {
      if (count <= 1 || (count == channels && count <= kMaxNormaliseChannels)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "has ", count, " values of ", field, ", want 1",
          channels == 1 || channels > kMaxNormaliseChannels ? "" : absl::StrCat(" or ", channels)));
    }
    return ValueType{.element = ElementType::kFloat32, .shape = input.shape};
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    Value out = Value::Create(ElementType::kFloat32, input.type.shape);
    const size_t scales = factors_.scale.size();
    const size_t biases = factors_.bias.size();
    for (size_t i = 0; i < out.floats.size(); ++i) {
      const float x = input.type.element == ElementType::kUint8
                          ? static_cast<float>(input.uint8s[i])
                          : input.floats[i];
      const float scaled = x * factors_.scale[i % scales];
      out.floats[i] = scaled + factors_.bias[i % biases];
    }
    return out;
  }

  absl::StatusOr<Value> Run(Value input, const ExampleKey&) const override {
    Value out = Value::Create(ElementType::kFloat32, input.type.shape);
    SYSTOLE_RETURN_IF_ERROR(
        input.type.element == ElementType::kUint8
            ? NormaliseUint8(input.uint8s, factors_, PixelType::kFloat32, out.memory())
            : NormaliseFloat(input.floats, factors_, PixelType::kFloat32, out.memory()));
    return out;
  }

  ByRow by_row() const override { return ByRow::kYes; }
  RowChange ChangeOf(const Value&, const ExampleKey&) const override {
    return NormaliseRows(factors_);
  }

  int RulesByValue() const override {
    return static_cast<int>(std::max(factors_.scale.size(), factors_.bias.size()));
  }

  std::vector<OperationPart> Parts() const override { return {NormalisePart{factors_}}; }

 private:
  NormaliseFactors factors_;
  int mean_;
  int stddev_;
};

}  // namespace

OperationRow NormalizeRow() {
  return {
      .kind = v1::Transform::kNormalize,
      .guide =
          {
              .summary = "Computes (x * scale - mean) / stddev in each channel.",
              .example = "normalize { mean: 127.5 stddev: 63.75 }",
              .tensorflow = "(x - mean) / stddev",
              .torchvision = "Normalize",
              .dali = "fn.normalize",
              .parity = "within 5e-7 of (|x * scale| + |mean|) / stddev: one multiplication and "
                        "one addition, with factors made once",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::Normalize& normalize = arguments.transform.normalize();
        const int mean = normalize.mean_size();
        const int stddev = normalize.stddev_size();
        if (mean > 1 && stddev > 1 && mean != stddev) {
          return absl::InvalidArgumentError(
              absl::StrCat("has ", mean, " values of mean and ", stddev,
                           " of stddev, want the same number, or 1 of either"));
        }
        SYSTOLE_ASSIGN_OR_RETURN(
            NormaliseFactors factors,
            FactorsOf(normalize.scale(), normalize.mean(), normalize.stddev()));
        return std::make_unique<Normalize>(std::move(factors), mean, stddev);
      },
      .write_defaults =
          [](v1::Transform& transform) {
            v1::Normalize& normalize = *transform.mutable_normalize();
            if (normalize.scale() == 0) normalize.set_scale(1);
          },
  };
}

}  // namespace systole
