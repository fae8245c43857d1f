// Looks at bytes that may be a JPEG: `inspect` shows what they are, `verify` checks them.
//
// Single-thread: a JpegCheck uses one decoder for all images.
#ifndef SYSTOLE_CLIENT_CLI_SHARDS_JPEG_CHECK_H_
#define SYSTOLE_CLIENT_CLI_SHARDS_JPEG_CHECK_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/image/jpeg/jpeg_decoder.h"

namespace systole {

// Whether `bytes` begin as every JPEG does (FF D8).
bool LooksLikeJpeg(absl::string_view bytes);

// What bytes that are not a JPEG may be. The result is "text" if all bytes can be printed.
// Otherwise the first bytes decide: "PNG", "GIF", "WebP", "BMP", "TIFF", "gzip" or "other bytes".
absl::string_view KindOfBytes(absl::string_view bytes);

class JpegCheck {
 public:
  static absl::StatusOr<JpegCheck> Create();

  // Reads only the size. Errors: JpegDecoder::ReadHeader.
  absl::StatusOr<ImageInfo> ReadHeader(absl::string_view jpeg) { return decoder_.ReadHeader(jpeg); }

  // Decodes every row and drops it. Errors: JpegDecoder::ReadHeader and Decode.
  absl::Status DecodeAll(absl::string_view jpeg);

 private:
  explicit JpegCheck(JpegDecoder decoder) : decoder_(std::move(decoder)) {}

  JpegDecoder decoder_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_SHARDS_JPEG_CHECK_H_
