// Computes (x - mean) / stddev by the image's own mean and deviation, as
// tf.image.per_image_standardization does.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "core/operations/ops/operation_rows.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// The sum of term(x) over all x. It is made of eight sums, each of every eighth value, so that no
// addition waits for the one before.
template <typename Term>
double SumOf(const std::vector<float>& values, const Term& term) {
  std::array<double, 8> sums = {};
  size_t i = 0;
  for (; i + sums.size() <= values.size(); i += sums.size()) {
    for (size_t j = 0; j < sums.size(); ++j) sums[j] += term(values[i + j]);
  }
  for (size_t j = 0; i < values.size(); ++i, ++j) sums[j] += term(values[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

class PerImageStandardization final : public Operation {
 public:
  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    return ValueType{.element = ElementType::kFloat32, .shape = input.shape};
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    Value out;
    if (input.type.element == ElementType::kFloat32) {
      out = std::move(input);
    } else {
      out = Value::Create(ElementType::kFloat32, input.type.shape);
      std::copy(input.uint8s.begin(), input.uint8s.end(), out.floats.begin());
    }
    const auto count = static_cast<double>(out.floats.size());
    const auto mean =
        static_cast<float>(SumOf(out.floats, [](float x) -> double { return x; }) / count);
    const double squares = SumOf(out.floats, [mean](float x) {
      const double difference = x - mean;
      return difference * difference;
    });
    // A square root is rounded correctly on every processor. `least` avoids a division by 0 for
    // images of one colour, which have no deviation.
    const float stddev = std::sqrt(static_cast<float>(squares / count));
    const float least = 1 / std::sqrt(static_cast<float>(count));
    const float divisor = stddev < least ? least : stddev;
    for (float& x : out.floats) x = (x - mean) / divisor;
    return out;
  }
};

}  // namespace

OperationRow PerImageStandardizationRow() {
  return {
      .kind = v1::Transform::kPerImageStandardization,
      .guide =
          {
              .summary = "Gives each image the mean 0 and the standard deviation 1.",
              .example = "per_image_standardization {}",
              .tensorflow = "tf.image.per_image_standardization",
              .dali = "fn.normalize",
              .parity =
                  "within 2e-5 of the image's largest value / its deviation, for values up to "
                  "1e14: "
                  "sums are exact where TensorFlow's round. An image of one colour is 0 only here",
          },
      .create = [](const OperationArguments&) -> absl::StatusOr<std::unique_ptr<const Operation>> {
        return std::make_unique<PerImageStandardization>();
      },
  };
}

}  // namespace systole
