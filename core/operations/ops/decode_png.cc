// Decodes the bytes of a PNG file to uint8 [height, width, channels], in the file's size.
#include <memory>

#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/whole_image.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class DecodePngOperation final : public Operation {
 public:
  explicit DecodePngOperation(int channels) : channels_(channels) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantBytes(input));
    return ImageOfAnySize(channels_);
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    return DecodeWholePng(input.bytes, channels_);
  }

  int64_t ScratchBytes(int64_t) const override { return PngScratchBytes(channels_); }

 private:
  const int channels_;
};

}  // namespace

OperationRow DecodePngRow() {
  return {
      .kind = v1::Transform::kDecodePng,
      .guide =
          {
              .summary = "Decodes a PNG file to pixels.",
              .example = "decode_png {}",
              .tensorflow = "tf.io.decode_png",
              .torchvision = "torchvision.io.decode_png",
              .dali = "fn.decoders.image",
              .parity = "exact for uint8, with 1 or 3 channels",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        SYSTOLE_RETURN_IF_ERROR(WantNoStoredShape(arguments));
        SYSTOLE_ASSIGN_OR_RETURN(const int channels,
                                 ChannelsOf(arguments.transform.decode_png().channels()));
        return std::make_unique<DecodePngOperation>(channels);
      },
      .write_defaults =
          [](v1::Transform& transform) {
            v1::DecodePng& decode = *transform.mutable_decode_png();
            if (decode.channels() == 0) decode.set_channels(3);
          },
  };
}

}  // namespace systole
