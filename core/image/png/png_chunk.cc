#include "core/image/png/png_chunk.h"

#include "core/checksum/crc32.h"

namespace systole {

uint32_t BigEndian(absl::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

bool PngChunkView::IsIntact() const {
  // The type and the data follow each other in the file, and the checksum follows them.
  const absl::string_view summed(type.data(), type.size() + data.size());
  return Crc32(summed) == BigEndian({summed.data() + summed.size(), 4}, 0);
}

std::optional<PngChunkView> FirstPngChunk(absl::string_view file) {
  constexpr size_t kHead = 8, kCrc = 4;
  if (file.size() < kHead + kCrc) return std::nullopt;
  const size_t bytes = BigEndian(file, 0);
  if (bytes > file.size() - kHead - kCrc) return std::nullopt;
  return PngChunkView{.type = file.substr(4, 4),
                      .data = file.substr(kHead, bytes),
                      .rest = file.substr(kHead + bytes + kCrc)};
}

}  // namespace systole
