#include "core/checksum/crc32.h"

#include <isa-l/crc.h>

#include "core/checksum/upper_parts.h"

namespace systole {

uint32_t Crc32(absl::string_view bytes) {
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  const uint32_t crc = crc32_gzip_refl(0, data, bytes.size());
  ClearUpperParts();
  return crc;
}

}  // namespace systole
