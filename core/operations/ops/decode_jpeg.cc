// Decodes the bytes of a JPEG file to uint8 [height, width, channels], in the file's size.
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/image/jpeg/jpeg_decoder.h"
#include "core/operations/ops/operation_rows.h"
#include "core/operations/ops/whole_image.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class DecodeJpeg final : public Operation {
 public:
  DecodeJpeg(JpegDecoderOptions options, bool scaled)
      : options_(std::move(options)), scaled_(scaled) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantBytes(input));
    return ImageOfAnySize(options_.channels);
  }

  // With scale: AUTO and a later resize, ScaledDecoding runs instead of this function.
  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    return DecodeWholeJpeg(input.bytes, options_);
  }

  std::vector<OperationPart> Parts() const override { return {DecodeJpegPart{options_, scaled_}}; }

 private:
  JpegDecoderOptions options_;
  bool scaled_;
};

}  // namespace

OperationRow DecodeJpegRow() {
  return {
      .kind = v1::Transform::kDecodeJpeg,
      .guide =
          {
              .summary = "Decodes a JPEG file to pixels.",
              .example = "decode_jpeg { dct: ISLOW }",
              .tensorflow = "tf.io.decode_jpeg",
              .torchvision = "torchvision.io.decode_jpeg",
              .dali = "fn.decoders.image",
              .parity = "exact with the same dct, whose default is IFAST in TensorFlow and ISLOW "
                        "here. With scale: AUTO different: each pixel is about the mean of 2 x 2, "
                        "4 x 4 or 8 x 8",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::DecodeJpeg& decode = arguments.transform.decode_jpeg();
        SYSTOLE_RETURN_IF_ERROR(WantNoStoredShape(arguments));
        SYSTOLE_ASSIGN_OR_RETURN(const int channels, ChannelsOf(decode.channels()));
        SYSTOLE_ASSIGN_OR_RETURN(const JpegDct dct, DctOf(decode.dct()));
        if (!v1::DecodeJpeg::Scale_IsValid(decode.scale())) {
          return absl::InvalidArgumentError(
              absl::StrCat("has scale ", static_cast<int>(decode.scale()), ", want FULL or AUTO"));
        }
        return std::make_unique<DecodeJpeg>(
            JpegDecoderOptions{.dct = dct,
                               .fancy_upsampling = !decode.plain_upscaling(),
                               .channels = channels,
                               .fail_on_warning = !decode.allow_warnings()},
            decode.scale() == v1::DecodeJpeg::AUTO);
      },
      .write_defaults =
          [](v1::Transform& transform) {
            v1::DecodeJpeg& decode = *transform.mutable_decode_jpeg();
            if (decode.channels() == 0) decode.set_channels(3);
          },
  };
}

}  // namespace systole
