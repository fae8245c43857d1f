// Bytes of a JPEG file -> uint8 [height, width, channels], of a size that the file tells.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/image/jpeg_decoder.h"
#include "core/operations/operation_rows.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

class DecodeJpeg final : public Operation {
 public:
  explicit DecodeJpeg(JpegDecoderOptions options) : options_(std::move(options)) {}

  absl::StatusOr<ValueType> TypeOf(const ValueType& input) const override {
    SYSTOLE_RETURN_IF_ERROR(WantBytes(input));
    return ValueType{.element = ElementType::kUint8,
                     .shape = {kAnySize, kAnySize, options_.channels}};
  }

  absl::StatusOr<Value> Apply(Value input, const ExampleKey&) const override {
    SYSTOLE_ASSIGN_OR_RETURN(JpegDecoder decoder, JpegDecoder::Create(options_));
    SYSTOLE_ASSIGN_OR_RETURN(const ImageInfo info, decoder.ReadHeader(input.bytes));
    SYSTOLE_RETURN_IF_ERROR(
        CheckValueBytes(ElementType::kUint8, info.height, info.width, options_.channels));
    Value image = Value::Create(ElementType::kUint8, {info.height, info.width, options_.channels});
    SYSTOLE_RETURN_IF_ERROR(
        decoder.Decode(WholeImage(info.height, info.width), absl::MakeSpan(image.uint8s)));
    return image;
  }

  std::vector<OperationPart> Parts() const override { return {DecodeJpegPart{options_}}; }

 private:
  JpegDecoderOptions options_;
};

}  // namespace

OperationRow DecodeJpegRow() {
  return {
      .kind = v1::Transform::kDecodeJpeg,
      .guide =
          {
              .summary = "A JPEG file as pixels.",
              .example = "decode_jpeg { dct: ISLOW }",
              .tensorflow = "tf.io.decode_jpeg",
              .torchvision = "torchvision.io.decode_jpeg",
              .dali = "fn.decoders.image",
              .parity = "exact with the same dct; TensorFlow takes IFAST if nothing is said, "
                        "this ISLOW",
          },
      .create = [](const OperationArguments& arguments)
          -> absl::StatusOr<std::unique_ptr<const Operation>> {
        const v1::DecodeJpeg& decode = arguments.transform.decode_jpeg();
        if (!arguments.stored_shape.empty()) {
          return absl::InvalidArgumentError(
              "gives images of the file's size, so the output's shape must be empty; a crop or "
              "resize gives it");
        }
        const int channels = decode.channels() == 0 ? 3 : decode.channels();
        if (channels != 1 && channels != 3) {
          return absl::InvalidArgumentError(
              absl::StrCat("channels is ", channels, ", want 1 or 3"));
        }
        if (!v1::DecodeJpeg::Dct_IsValid(decode.dct())) {
          return absl::InvalidArgumentError(
              absl::StrCat("has dct ", static_cast<int>(decode.dct()), ", want ISLOW or IFAST"));
        }
        return std::make_unique<DecodeJpeg>(JpegDecoderOptions{
            .dct = decode.dct() == v1::DecodeJpeg::IFAST ? JpegDct::kIfast : JpegDct::kIslow,
            .channels = channels,
            .fail_on_warning = !decode.allow_warnings()});
      },
      .write_defaults =
          [](v1::Transform& transform) {
            v1::DecodeJpeg& decode = *transform.mutable_decode_jpeg();
            if (decode.channels() == 0) decode.set_channels(3);
          },
  };
}

}  // namespace systole
