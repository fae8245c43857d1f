// Encodes 8-bit pixels as a baseline or progressive JPEG, for tools and tests.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_JPEG_ENCODER_H_
#define SYSTOLE_CORE_IMAGE_JPEG_JPEG_ENCODER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace systole {

// The resolution of colour, in this order: full; half width; half width and height; half height;
// quarter width; quarter width and half height.
enum class JpegSampling { k444, k422, k420, k440, k411, k410 };

struct JpegEncoderOptions {
  // 1 (smallest) to 100 (best).
  int quality = 95;
  // Ignored for grey images.
  JpegSampling sampling = JpegSampling::k420;
  bool progressive = false;
  // A restart marker is written after this many rows of MCUs. 0: none.
  int restart_rows = 0;
};

// `pixels`: [height, width, channels] uint8 with 1 (grey) or 3 (RGB) channels.
//   InvalidArgument  a size, channel count, option or span that does not fit;
//                    height or width above 65500.
absl::StatusOr<std::string> EncodeJpeg(absl::Span<const uint8_t> pixels, int width, int height,
                                       int channels, const JpegEncoderOptions& options = {});

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_JPEG_ENCODER_H_
