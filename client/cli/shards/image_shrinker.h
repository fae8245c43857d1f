// Makes a photograph smaller before it is packed.
//
// Thread-safe: pure functions of values.
#ifndef SYSTOLE_CLIENT_CLI_SHARDS_IMAGE_SHRINKER_H_
#define SYSTOLE_CLIENT_CLI_SHARDS_IMAGE_SHRINKER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace systole {

struct RgbImage {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3] uint8, row-major.
};

// Returns `image`, shrunk until its short side has `short_px` pixels. The aspect ratio is kept, to
// the nearest pixel. An image whose short side is not longer than `short_px` is returned as it is.
// A bilinear resize alone would skip pixels of a much larger image. So while the image is at least
// twice as large as wanted, each block of 2x2 pixels is averaged, and an odd last row or column is
// dropped. A bilinear resize does the rest.
//   InvalidArgument  short_px < 1.
absl::StatusOr<RgbImage> ShrinkShortSide(RgbImage image, int short_px);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_SHARDS_IMAGE_SHRINKER_H_
