#include "core/image/jpeg/jpeg_decoder.h"

#include "core/image/jpeg/entropy_check.h"
#include "core/status/status_macros.h"

namespace systole {

absl::StatusOr<JpegDecoder> JpegDecoder::Create(const JpegDecoderOptions& options) {
  JpegDecoderOptions checked = options;
  if (!OwnJpegEntropyDecoding().ok()) checked.library_entropy_decoder = true;
  SYSTOLE_ASSIGN_OR_RETURN(UncheckedJpegDecoder decoder, UncheckedJpegDecoder::Create(checked));
  return JpegDecoder(std::move(decoder));
}

}  // namespace systole
