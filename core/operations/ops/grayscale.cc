// Computes the brightness of each pixel, as tf.image.rgb_to_grayscale does.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/numeric/colour.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/unit_values.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

float Grey(float r, float g, float b) { return r * 0.2989f + g * 0.587f + b * 0.114f; }

class Grayscale final : public Operation {
 public:
  explicit Grayscale(int channels) : channels_(channels) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantColour(input));
    return ValueType{.element = input.element,
                     .shape = {input.shape[0], input.shape[1], channels_}};
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    Value grey = Value::Create(input.type.element, {input.height(), input.width(), channels_});
    const auto channels = static_cast<size_t>(channels_);
    float* floats = grey.floats.data();
    for (size_t i = 0; i < input.floats.size(); i += 3) {
      const float* const pixel = &input.floats[i];
      floats = std::fill_n(floats, channels, Grey(pixel[0], pixel[1], pixel[2]));
    }
    uint8_t* uint8s = grey.uint8s.data();
    for (size_t i = 0; i < input.uint8s.size(); i += 3) {
      const uint8_t* const pixel = &input.uint8s[i];
      uint8s = std::fill_n(
          uint8s, channels,
          UnitToUint8(Grey(Uint8ToUnit(pixel[0]), Uint8ToUnit(pixel[1]), Uint8ToUnit(pixel[2]))));
    }
    return grey;
  }

  absl::StatusOr<Value> Run(Value input, const ExampleKey&) const override {
    Value grey = Value::Create(input.type.element, {input.height(), input.width(), channels_});
    MakeGrey(absl::MakeConstSpan(input.floats), channels_, absl::MakeSpan(grey.floats));
    MakeGrey(absl::MakeConstSpan(input.uint8s), channels_, absl::MakeSpan(grey.uint8s));
    return grey;
  }

 private:
  int channels_;
};

}  // namespace

OperationRow GrayscaleRow() {
  return {
      .kind = v1::Transform::kGrayscale,
      .guide =
          {
              .summary = "Makes images grey, with one channel or three equal ones.",
              .example = "grayscale { channels: 1 }",
              .tensorflow = "tf.image.rgb_to_grayscale",
              .torchvision = "Grayscale",
              .dali = "fn.color_space_conversion",
              .parity = "exact",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const int channels = arguments.transform.grayscale().channels();
        if (channels != 1 && channels != 3) {
          return absl::InvalidArgumentError(
              absl::StrCat("channels is ", channels, ", want 1 or 3"));
        }
        return std::make_unique<Grayscale>(channels);
      },
      .write_defaults =
          [](v1::Transform& transform) {
            v1::Grayscale& grayscale = *transform.mutable_grayscale();
            if (grayscale.channels() == 0) grayscale.set_channels(1);
          },
  };
}

}  // namespace systole
