// Decodes the bytes of a JPEG or PNG file to uint8 [height, width, channels], in the file's size.
#include <memory>
#include <utility>

#include "core/image/png/png_decoder.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/whole_image.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class DecodeImage final : public Operation {
 public:
  explicit DecodeImage(JpegDecoderOptions jpeg) : jpeg_(std::move(jpeg)) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantBytes(input));
    return ImageOfAnySize(jpeg_.channels);
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    // If the bytes are neither a JPEG nor a PNG, the JPEG decoder's error names other known
    // formats.
    return LooksLikePng(input.bytes) ? DecodeWholePng(input.bytes, jpeg_.channels)
                                     : DecodeWholeJpeg(input.bytes, jpeg_);
  }

  int64_t ScratchBytes(int64_t) const override { return PngScratchBytes(jpeg_.channels); }

 private:
  const JpegDecoderOptions jpeg_;
};

}  // namespace

OperationRow DecodeImageRow() {
  return {
      .kind = v1::Transform::kDecodeImage,
      .guide =
          {
              .summary = "Decodes a JPEG or PNG file to pixels, whichever it is.",
              .example = "decode_image {}",
              .tensorflow = "tf.io.decode_image",
              .torchvision = "torchvision.io.decode_image",
              .dali = "fn.decoders.image",
              .parity = "exact with the same dct for JPEG and PNG; no GIF and no BMP",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::DecodeImage& decode = arguments.transform.decode_image();
        SYSTOLE_RETURN_IF_ERROR(WantNoStoredShape(arguments));
        SYSTOLE_ASSIGN_OR_RETURN(const int channels, ChannelsOf(decode.channels()));
        SYSTOLE_ASSIGN_OR_RETURN(const JpegDct dct, DctOf(decode.dct()));
        return std::make_unique<DecodeImage>(JpegDecoderOptions{
            .dct = dct, .channels = channels, .fail_on_warning = !decode.allow_warnings()});
      },
      .write_defaults =
          [](v1::Transform& transform) {
            v1::DecodeImage& decode = *transform.mutable_decode_image();
            if (decode.channels() == 0) decode.set_channels(3);
          },
  };
}

}  // namespace systole
