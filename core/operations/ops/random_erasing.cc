// Fills a random rectangle of the image: torchvision's RandomErasing with draws of our own.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/image/window/crop.h"
#include "core/numeric/math.h"
#include "core/operations/ops/operation_rows.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr int kAttempts = 10;

struct ErasingOptions {
  float probability;
  float min_area;
  float max_area;
  float min_aspect;  // Height / width.
  float max_aspect;
  std::vector<float> value;
};

absl::Status CheckOptions(const ErasingOptions& options) {
  // This form of the condition also refuses NaN.
  if (!(options.probability > 0 && options.probability <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("probability is ", options.probability, ", want 0 < probability <= 1"));
  }
  if (!(options.min_area > 0 && options.min_area <= options.max_area && options.max_area <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("has area_min: ", options.min_area,
                                                   " and area_max: ", options.max_area,
                                                   ", want 0 < min <= max <= 1"));
  }
  if (!(options.min_aspect >= 1e-3f && options.min_aspect <= options.max_aspect &&
        options.max_aspect <= 1e3f)) {
    return absl::InvalidArgumentError(absl::StrCat("has aspect_min: ", options.min_aspect,
                                                   " and aspect_max: ", options.max_aspect,
                                                   ", want 0.001 <= min <= max <= 1000"));
  }
  if (options.value.size() != 1 && options.value.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", options.value.size(), " values of value, want 1 or 3"));
  }
  for (const float value : options.value) {
    if (std::isfinite(value)) continue;
    return absl::InvalidArgumentError(absl::StrCat("has value: ", value, ", want finite numbers"));
  }
  return absl::OkStatus();
}

// The rectangle to fill, or nullopt to leave the image as it is. Draws, in this order:
//   UniformFloat()        whether to fill a rectangle
//   UniformFloat() twice  area and aspect; repeated until a rectangle fits, at most kAttempts times
//   UniformInt() twice    y and x of the rectangle that fits
std::optional<CropRect> DrawRect(const ErasingOptions& options, int height, int width,
                                 CounterRng& rng) {
  if (!(rng.UniformFloat() < options.probability)) return std::nullopt;
  const double image_area = static_cast<double>(height) * width;
  const float log_min = Log(options.min_aspect);
  const float log_max = Log(options.max_aspect);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double area_draw = rng.UniformFloat();
    const float aspect_draw = rng.UniformFloat();
    const double area =
        image_area *
        (options.min_area + (static_cast<double>(options.max_area) - options.min_area) * area_draw);
    const double aspect = Exp(log_min + (log_max - log_min) * aspect_draw);
    // std::nearbyint() rounds half to even. Both results are below 2^20, and so fit an int: the
    // square root of the image's area is below 2^15, that of an aspect or its inverse below 2^5.
    const auto rows = static_cast<int>(std::nearbyint(std::sqrt(area * aspect)));
    const auto columns = static_cast<int>(std::nearbyint(std::sqrt(area / aspect)));
    if (rows >= height || columns >= width) continue;
    const auto y = static_cast<int>(rng.UniformInt(0, height - rows + 1));
    const auto x = static_cast<int>(rng.UniformInt(0, width - columns + 1));
    return CropRect{.y = y, .x = x, .height = rows, .width = columns};
  }
  return std::nullopt;
}

class RandomErasing final : public Operation {
 public:
  RandomErasing(Draws draws, ErasingOptions options)
      : draws_(draws), options_(std::move(options)) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantImage(input));
    const size_t values = options_.value.size();
    if (values != 1 && static_cast<int64_t>(values) != input.shape[2]) {
      return absl::InvalidArgumentError(absl::StrCat("has ", values, " values of value, want 1"));
    }
    for (const float value : options_.value) {
      if (input.element != ElementType::kUint8) break;
      if (value >= 0 && value <= 255 && std::trunc(value) == value) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "has value: ", value, ", want whole numbers from 0 to 255 for uint8 images"));
    }
    return input;
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey& example) const override {
    CounterRng rng = draws_.Rng(example);
    const std::optional<CropRect> rect =
        DrawRect(options_, static_cast<int>(input.height()), static_cast<int>(input.width()), rng);
    if (!rect.has_value()) return input;
    for (int64_t y = rect->y; y < rect->y + rect->height; ++y) {
      for (int64_t x = rect->x; x < rect->x + rect->width; ++x) {
        for (int64_t c = 0; c < input.channels(); ++c) {
          const auto i = static_cast<size_t>((y * input.width() + x) * input.channels() + c);
          const float value = options_.value[static_cast<size_t>(c) % options_.value.size()];
          if (input.type.element == ElementType::kUint8) {
            input.uint8s[i] = static_cast<uint8_t>(value);
          } else {
            input.floats[i] = value;
          }
        }
      }
    }
    return input;
  }

 private:
  Draws draws_;
  ErasingOptions options_;
};

}  // namespace

OperationRow RandomErasingRow() {
  return {
      .kind = v1::Transform::kRandomErasing,
      .guide =
          {
              .summary = "Fills a random rectangle of some images.",
              .example = "random_erasing { probability: 0.25 }",
              .torchvision = "RandomErasing",
              .dali = "fn.erase",
          },
      .draws = 24,
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::RandomErasing& erasing = arguments.transform.random_erasing();
        ErasingOptions options = {.probability = erasing.probability(),
                                  .min_area = erasing.area_min(),
                                  .max_area = erasing.area_max(),
                                  .min_aspect = erasing.aspect_min(),
                                  .max_aspect = erasing.aspect_max(),
                                  .value = {erasing.value().begin(), erasing.value().end()}};
        SYSTOLE_RETURN_IF_ERROR(CheckOptions(options));
        return std::make_unique<RandomErasing>(arguments.draws, std::move(options));
      },
      .write_defaults =
          [](v1::Transform& transform) {
            v1::RandomErasing& erasing = *transform.mutable_random_erasing();
            if (erasing.probability() == 0) erasing.set_probability(0.5f);
            if (erasing.area_min() == 0) erasing.set_area_min(0.02f);
            if (erasing.area_max() == 0) erasing.set_area_max(0.33f);
            if (erasing.aspect_min() == 0) erasing.set_aspect_min(0.3f);
            if (erasing.aspect_max() == 0) erasing.set_aspect_max(3.3f);
            if (erasing.value().empty()) erasing.add_value(0);
          },
  };
}

}  // namespace systole
