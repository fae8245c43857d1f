// Writes PNG files for tests, with 8 bits per channel, grey or RGB.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CORE_IMAGE_PNG_PNG_BUILDER_H_
#define SYSTOLE_TESTS_CORE_IMAGE_PNG_PNG_BUILDER_H_

#include <zlib.h>

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "core/status/check.h"

namespace systole {

inline std::string BigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

inline std::string PngChunk(const std::string& kind, const std::string& data) {
  const std::string body = kind + data;
  const uLong crc =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return BigEndian(static_cast<uint32_t>(data.size())) + body +
         BigEndian(static_cast<uint32_t>(crc));
}

// `pixels` is [height, width, channels], with 1 or 3 channels.
inline std::string PngOf(absl::string_view pixels, int width, int height, int channels) {
  std::string rows;
  const size_t row_bytes = static_cast<size_t>(width) * channels;
  for (int y = 0; y < height; ++y) {
    rows.push_back('\0');  // No filter.
    rows.append(pixels.data() + y * row_bytes, row_bytes);
  }
  std::string data(compressBound(rows.size()), '\0');
  uLongf size = data.size();
  SYSTOLE_CHECK(compress(reinterpret_cast<Bytef*>(data.data()), &size,
                         reinterpret_cast<const Bytef*>(rows.data()), rows.size()) == Z_OK);
  data.resize(size);
  const std::string kind = {8, static_cast<char>(channels == 3 ? 2 : 0), 0, 0, 0};
  return "\x89PNG\r\n\x1a\n" + PngChunk("IHDR", BigEndian(width) + BigEndian(height) + kind) +
         PngChunk("IDAT", data) + PngChunk("IEND", "");
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_IMAGE_PNG_PNG_BUILDER_H_
