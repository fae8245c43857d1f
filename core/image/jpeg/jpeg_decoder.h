// Decodes a rectangle of a JPEG to 8-bit pixels. The pixels are the same as in that rectangle of
// the whole decoded image. Decoding the rectangle takes less time than decoding the whole image.
// Columns outside the rectangle are not transformed, rows above are only entropy-decoded, and rows
// below are not read. JpegDecoder can also decode at a half, a quarter or an eighth of the size
// (JpegScale).
//
// Single-thread. Reusable, like its base class.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_JPEG_DECODER_H_
#define SYSTOLE_CORE_IMAGE_JPEG_JPEG_DECODER_H_

#include <utility>

#include "absl/status/statusor.h"
#include "core/image/jpeg/jpeg_options.h"
#include "core/image/jpeg/unchecked_jpeg_decoder.h"

namespace systole {

// Everything but Create() comes from the base class. If OwnJpegEntropyDecoding() is not OK
// (entropy_check.h), libjpeg does the entropy decoding of all images, and by_library() is true.
class JpegDecoder final : public UncheckedJpegDecoder {
 public:
  // InvalidArgument if an option is out of range. The first call in a process takes some
  // milliseconds more, for OwnJpegEntropyDecoding().
  static absl::StatusOr<JpegDecoder> Create(const JpegDecoderOptions& options = {});

 private:
  explicit JpegDecoder(UncheckedJpegDecoder decoder) : UncheckedJpegDecoder(std::move(decoder)) {}
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_JPEG_DECODER_H_
