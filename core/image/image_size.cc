#include "core/image/image_size.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/image/jpeg/jpeg_decoder.h"
#include "core/image/png/png_decoder.h"
#include "core/status/status_macros.h"

namespace systole {

absl::StatusOr<ImageSize> ReadImageSize(absl::string_view file) {
  if (LooksLikePng(file)) {
    SYSTOLE_ASSIGN_OR_RETURN(const PngInfo info, ReadPngHeader(file, /*channels=*/3));
    const ImageSize size = {
        .height = info.height, .width = info.width, .channels = info.is_grey ? 1 : 3};
    // The PNG decoder has no limit of its own.
    const int64_t most = JpegDecoderOptions().max_pixels;
    if (size.pixels() <= most) return size;
    return absl::ResourceExhaustedError(absl::StrCat("PNG of ", size.width, " x ", size.height,
                                                     " pixels; the limit is ", most,
                                                     " pixels in total"));
  }
  // Checks the first bytes before making a decoder, because most of the values that are passed here
  // may be text.
  if (!absl::StartsWith(file, "\xff\xd8\xff")) {
    return absl::DataLossError("the file is neither a JPEG nor a PNG");
  }
  SYSTOLE_ASSIGN_OR_RETURN(JpegDecoder decoder, JpegDecoder::Create());
  SYSTOLE_ASSIGN_OR_RETURN(const ImageInfo info, decoder.ReadHeader(file));
  return ImageSize{
      .height = info.height, .width = info.width, .channels = info.components == 1 ? 1 : 3};
}

std::optional<ImageSize> SizeOfImage(absl::string_view file) {
  const absl::StatusOr<ImageSize> size = ReadImageSize(file);
  return size.ok() ? std::optional(*size) : std::nullopt;
}

}  // namespace systole
