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

#include "absl/types/span.h"
#include "core/numeric/standardise.h"
#include "core/operations/ops/operation_rows.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// The sum of term(x) over all x. Eight sums, each over every eighth value, are added up at the end.
// So no addition has to wait for the previous addition.
template <typename Term>
double PlainSumOf(const std::vector<float>& values, const Term& term) {
  std::array<double, 8> sums = {};
  size_t i = 0;
  for (; i + sums.size() <= values.size(); i += sums.size()) {
    for (size_t j = 0; j < sums.size(); ++j) sums[j] += term(values[i + j]);
  }
  for (size_t j = 0; i < values.size(); ++i, ++j) sums[j] += term(values[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

struct Scale {
  float mean = 0;
  float divisor = 1;
};

// `sum` here and `squares` below are as in core/numeric/standardise.h.
float MeanOf(double sum, size_t count) {
  return static_cast<float>(sum / static_cast<double>(count));
}

// A square root is rounded correctly on every processor. `least` avoids a division by 0 for images
// of one colour, which have no deviation.
float DivisorOf(double squares, size_t values) {
  const auto count = static_cast<double>(values);
  const float stddev = std::sqrt(static_cast<float>(squares / count));
  const float least = 1 / std::sqrt(static_cast<float>(count));
  return stddev < least ? least : stddev;
}

template <typename T>
Scale ScaleOf(const std::vector<T>& values) {
  const float mean = MeanOf(SumOf(absl::MakeConstSpan(values)), values.size());
  return {.mean = mean,
          .divisor = DivisorOf(SumOfSquares(absl::MakeConstSpan(values), mean), values.size())};
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
    const size_t count = out.floats.size();
    const float mean = MeanOf(PlainSumOf(out.floats, [](float x) -> double { return x; }), count);
    const double squares = PlainSumOf(out.floats, [mean](float x) {
      const double difference = x - mean;
      return difference * difference;
    });
    const float divisor = DivisorOf(squares, count);
    for (float& x : out.floats) x = (x - mean) / divisor;
    return out;
  }

  // Feeds call Run for uint8 images, and ChangeOf for float32 images.
  absl::StatusOr<Value> Run(Value input, const ExampleKey&) const override {
    const Scale scale = ScaleOf(input.uint8s);
    Value out = Value::Create(ElementType::kFloat32, input.type.shape);
    Standardise(input.uint8s, scale.mean, scale.divisor, absl::MakeSpan(out.floats));
    return out;
  }

  ByRow by_row() const override { return ByRow::kAfterReadingAll; }
  RowChange ChangeOf(const Value& image, const ExampleKey&) const override {
    return [scale = ScaleOf(image.floats)](absl::Span<float> rows) {
      Standardise(rows, scale.mean, scale.divisor, rows);
    };
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
