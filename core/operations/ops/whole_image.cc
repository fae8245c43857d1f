#include "core/operations/ops/whole_image.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/image/png/png_decoder.h"
#include "core/image/window/crop.h"
#include "core/interrupt/interrupt.h"
#include "core/memory/scratch_scope.h"
#include "core/status/status_macros.h"

namespace systole {

ValueType ImageOfAnySize(int channels) {
  return {.element = ElementType::kUint8, .shape = {kAnySize, kAnySize, channels}};
}

absl::Status WantNoStoredShape(const OperationArguments& arguments) {
  if (arguments.stored_shape.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "makes images of the file's size, so the output's shape must be empty; leave shape out, and "
      "set the size by a crop or resize");
}

absl::StatusOr<int> ChannelsOf(int channels) {
  if (channels == 1 || channels == 3) return channels;
  return absl::InvalidArgumentError(absl::StrCat("channels is ", channels, ", want 1 or 3"));
}

absl::StatusOr<JpegDct> DctOf(v1::DecodeJpeg::Dct dct) {
  if (dct == v1::DecodeJpeg::ISLOW) return JpegDct::kIslow;
  if (dct == v1::DecodeJpeg::IFAST) return JpegDct::kIfast;
  return absl::InvalidArgumentError(
      absl::StrCat("has dct ", static_cast<int>(dct), ", want ISLOW or IFAST"));
}

absl::Status NeedValues(const ValueType& type, int64_t more) {
  if (NeedScratch(ScratchUse::kValues, 2 * type.num_bytes() + more)) return absl::OkStatus();
  return InterruptedError();
}

absl::StatusOr<Value> DecodeWholeJpeg(absl::string_view jpeg, const JpegDecoderOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(JpegDecoder decoder, JpegDecoder::Create(options));
  SYSTOLE_ASSIGN_OR_RETURN(const ImageInfo info, decoder.ReadHeader(jpeg));
  SYSTOLE_RETURN_IF_ERROR(
      CheckValueBytes(ElementType::kUint8, info.height, info.width, options.channels));
  const ValueType type = {.element = ElementType::kUint8,
                          .shape = {info.height, info.width, options.channels}};
  SYSTOLE_RETURN_IF_ERROR(NeedValues(type));
  Value image = Value::Create(type.element, type.shape);
  SYSTOLE_RETURN_IF_ERROR(
      decoder.Decode(WholeImage(info.height, info.width), absl::MakeSpan(image.uint8s)));
  return image;
}

absl::StatusOr<Value> DecodeWholePng(absl::string_view png, int channels) {
  SYSTOLE_ASSIGN_OR_RETURN(const PngInfo info, ReadPngHeader(png, channels));
  SYSTOLE_RETURN_IF_ERROR(CheckValueBytes(ElementType::kUint8, info.height, info.width,
                                          std::max(channels, info.scratch_bytes_per_pixel)));
  const ValueType type = {.element = ElementType::kUint8,
                          .shape = {info.height, info.width, channels}};
  SYSTOLE_RETURN_IF_ERROR(
      NeedValues(type, int64_t{info.height} * info.width * info.scratch_bytes_per_pixel));
  Value image = Value::Create(type.element, type.shape);
  SYSTOLE_RETURN_IF_ERROR(DecodePng(png, channels, absl::MakeSpan(image.uint8s)));
  return image;
}

}  // namespace systole
