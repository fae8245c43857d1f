// Decodes PNG files by libspng alone. The result defines which files are good, and which pixels
// they have.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CORE_IMAGE_PNG_SPNG_REFERENCE_H_
#define SYSTOLE_TESTS_CORE_IMAGE_PNG_SPNG_REFERENCE_H_

#include <spng.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace systole {

// The pixels in 3 channels of 8 bits, or nullopt if libspng refuses the file.
inline std::optional<std::vector<uint8_t>> DecodeBySpng(absl::string_view png) {
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context(spng_ctx_new(0), &spng_ctx_free);
  spng_set_image_limits(context.get(), 1 << 20, 1 << 20);
  spng_set_chunk_limits(context.get(), 8 << 20, 8 << 20);
  spng_set_crc_action(context.get(), SPNG_CRC_ERROR, SPNG_CRC_DISCARD);
  size_t bytes = 0;
  if (spng_set_png_buffer(context.get(), png.data(), png.size()) != 0 ||
      spng_decoded_image_size(context.get(), SPNG_FMT_RGB8, &bytes) != 0) {
    return std::nullopt;
  }
  std::vector<uint8_t> pixels(bytes);
  if (spng_decode_image(context.get(), pixels.data(), bytes, SPNG_FMT_RGB8, 0) != 0) {
    return std::nullopt;
  }
  return pixels;
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_IMAGE_PNG_SPNG_REFERENCE_H_
