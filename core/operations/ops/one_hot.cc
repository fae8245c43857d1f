// Turns each int64 into a vector. One element of the vector is on, and the others are off.
// tf.one_hot does the same.
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/operations/ops/operation_rows.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr int64_t kMaxDepth = kMaxValueBytes / int64_t{sizeof(float)};
// The most dimensions of the input. one_hot adds one dimension, and the batch adds another
// dimension.
constexpr size_t kMaxDimensions = 5;

class OneHot final : public Operation {
 public:
  OneHot(int64_t depth, float on, float off) : depth_(depth), on_(on), off_(off) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantInt64(input));
    if (input.num_elements() > kMaxDepth / depth_ || input.shape.size() > kMaxDimensions) {
      return absl::InvalidArgumentError(
          absl::StrCat("has depth: ", depth_, " and gets ", input.num_elements(), " values in ",
                       input.shape.size(), " dimensions, want a result of at most ", kMaxDepth,
                       " values, and an input of at most ", kMaxDimensions, " dimensions"));
    }
    std::vector<int64_t> shape = input.shape;
    shape.push_back(depth_);
    return ValueType{.element = ElementType::kFloat32, .shape = std::move(shape)};
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    std::vector<int64_t> shape = input.type.shape;
    shape.push_back(depth_);
    Value out = Value::Create(ElementType::kFloat32, std::move(shape));
    for (float& x : out.floats) x = off_;
    for (size_t i = 0; i < input.int64s.size(); ++i) {
      const int64_t index = input.int64s[i];
      if (index < 0 || index >= depth_) continue;
      out.floats[i * static_cast<size_t>(depth_) + static_cast<size_t>(index)] = on_;
    }
    return out;
  }

 private:
  int64_t depth_;
  float on_;
  float off_;
};

}  // namespace

OperationRow OneHotRow() {
  return {
      .kind = v1::Transform::kOneHot,
      .guide =
          {
              .summary = "Makes a label a vector with one value on.",
              .example = "one_hot { depth: 1000 }",
              .tensorflow = "tf.one_hot",
              .torchvision = "torch.nn.functional.one_hot",
              .dali = "fn.one_hot",
              .parity = "exact",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::OneHot& one_hot = arguments.transform.one_hot();
        if (one_hot.depth() < 1 || one_hot.depth() > kMaxDepth) {
          return absl::InvalidArgumentError(
              absl::StrCat("depth is ", one_hot.depth(), ", want 1 to ", kMaxDepth));
        }
        if (!std::isfinite(one_hot.on_value()) || !std::isfinite(one_hot.off_value())) {
          return absl::InvalidArgumentError(absl::StrCat("has on_value: ", one_hot.on_value(),
                                                         " and off_value: ", one_hot.off_value(),
                                                         ", want finite numbers"));
        }
        return std::make_unique<OneHot>(one_hot.depth(), one_hot.on_value(), one_hot.off_value());
      },
      .write_defaults =
          [](v1::Transform& transform) {
            v1::OneHot& one_hot = *transform.mutable_one_hot();
            if (one_hot.on_value() == 0) one_hot.set_on_value(1);
          },
  };
}

}  // namespace systole
