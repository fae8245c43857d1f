// Reads the size of an image from the header of its file.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_IMAGE_IMAGE_SIZE_H_
#define SYSTOLE_CORE_IMAGE_IMAGE_SIZE_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace systole {

struct ImageSize {
  int height = 0;
  int width = 0;
  int channels = 3;  // As stored: 1 if the image is grey, otherwise 3.

  int64_t pixels() const { return int64_t{height} * width; }
};

// Reads only the header.
//   DataLoss           `file` is neither a JPEG nor a PNG, or its header is broken.
//   ResourceExhausted  more pixels than JpegDecoderOptions::max_pixels.
//   Unavailable        no memory; the image itself may be good.
absl::StatusOr<ImageSize> ReadImageSize(absl::string_view file);

// Nullopt if `file` is not a JPEG or PNG, or if its header is broken or claims more pixels than the
// decoders accept.
std::optional<ImageSize> SizeOfImage(absl::string_view file);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_IMAGE_SIZE_H_
