// Decodes PNG files to 8 bits a channel. Drops the alpha channel, and the lower 8 of 16 bits. Uses
// a file's gamma only to make coloured images grey. The pixels are those that libpng makes when
// TensorFlow calls it.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_IMAGE_PNG_PNG_DECODER_H_
#define SYSTOLE_CORE_IMAGE_PNG_PNG_DECODER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace systole {

struct PngInfo {
  int width = 0;
  int height = 0;
  bool is_grey = false;  // With or without alpha. A palette is not grey.
  // Memory that DecodePng() takes beside its result: 0 for 3 channels.
  int scratch_bytes_per_pixel = 0;
};

// Whether the bytes begin like a PNG file.
bool LooksLikePng(absl::string_view bytes);

// Reads a PNG file's header. REQUIRES: channels is 1 or 3.
//   DataLoss           it is not a PNG file, or its header is damaged.
absl::StatusOr<PngInfo> ReadPngHeader(absl::string_view png, int channels);

// Decodes the whole file to `out`: [height, width, channels] uint8. With 3 channels, a grey image
// has three equal channels. With 1 channel, a coloured image becomes grey (png_grey.h).
//   InvalidArgument  `out` has another size.
//   DataLoss         the file is damaged or cut short.
//   Unavailable      no memory; the image itself may be good.
absl::Status DecodePng(absl::string_view png, int channels, absl::Span<uint8_t> out);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_PNG_PNG_DECODER_H_
