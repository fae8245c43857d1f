#include "core/image/image_size.h"

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "core/image/jpeg/jpeg_decoder.h"
#include "core/image/png/png_decoder.h"

namespace systole {

std::optional<ImageSize> SizeOfImage(absl::string_view file) {
  if (LooksLikePng(file)) {
    const absl::StatusOr<PngInfo> info = ReadPngHeader(file, /*channels=*/3);
    if (!info.ok()) return std::nullopt;
    const ImageSize size = {.height = info->height, .width = info->width};
    // The PNG decoder has no limit of its own.
    return size.pixels() <= JpegDecoderOptions().max_pixels ? std::optional(size) : std::nullopt;
  }
  // Looks at the bytes before it makes a decoder, because most of these files may be text.
  if (!absl::StartsWith(file, "\xff\xd8\xff")) return std::nullopt;
  absl::StatusOr<JpegDecoder> decoder = JpegDecoder::Create();
  if (!decoder.ok()) return std::nullopt;
  const absl::StatusOr<ImageInfo> info = decoder->ReadHeader(file);
  if (!info.ok()) return std::nullopt;
  return ImageSize{.height = info->height, .width = info->width};
}

}  // namespace systole
