#include "core/operations/ops/scaled_decoding.h"

#include <variant>

#include "core/image/scaled_crop.h"
#include "core/image/window/crop.h"
#include "core/operations/ops/plain_image.h"
#include "core/operations/ops/whole_image.h"
#include "core/status/status_macros.h"

namespace systole {

std::optional<ScaledDecoding> ScaledDecoding::Create(
    absl::Span<const Operation* const> operations) {
  ScaledDecoding decoding;
  for (const Operation* const operation : operations) {
    const std::vector<OperationPart> parts = operation->Parts();
    const bool is_first = decoding.num_operations_++ == 0;
    if (parts.empty()) return std::nullopt;
    for (const OperationPart& part : parts) {
      const auto* const decode = std::get_if<DecodeJpegPart>(&part);
      if (is_first != (decode != nullptr && decode->scaled)) return std::nullopt;
      if (is_first) {
        decoding.jpeg_ = decode->options;
      } else if (const auto* const window = std::get_if<WindowPart>(&part)) {
        decoding.windows_.emplace_back(*window);
      } else if (const auto* const resize = std::get_if<ResizePart>(&part)) {
        decoding.resize_ = *resize;
        return decoding;
      } else {
        return std::nullopt;
      }
    }
  }
  return std::nullopt;
}

absl::StatusOr<Value> ScaledDecoding::Apply(absl::string_view jpeg,
                                            const ExampleKey& example) const {
  SYSTOLE_ASSIGN_OR_RETURN(JpegDecoder decoder, JpegDecoder::Create(jpeg_));
  SYSTOLE_ASSIGN_OR_RETURN(const ImageInfo info, decoder.ReadHeader(jpeg));
  // The crop is in pixels of the stored image, so that a draw does not depend on the scale.
  SYSTOLE_ASSIGN_OR_RETURN(const ImageWindow window,
                           WindowOf(windows_, info.height, info.width, example));
  const ScaledCrop scaled = ScaleCrop(window.rect, resize_.height, resize_.width);
  const int height = ScaledSide(info.height, scaled.scale);
  const int width = ScaledSide(info.width, scaled.scale);
  SYSTOLE_RETURN_IF_ERROR(CheckValueBytes(ElementType::kUint8, height, width, jpeg_.channels));
  const ValueType type = {.element = ElementType::kUint8, .shape = {height, width, jpeg_.channels}};
  SYSTOLE_RETURN_IF_ERROR(NeedValues(type));
  Value image = Value::Create(type.element, type.shape);
  SYSTOLE_RETURN_IF_ERROR(
      decoder.Decode(WholeImage(height, width), absl::MakeSpan(image.uint8s), scaled.scale));
  return ResizePlainly(CropPlainly(image, scaled.rect), scaled.rows, scaled.columns, resize_.height,
                       resize_.width);
}

}  // namespace systole
