// CRC-32, as in PNG, gzip and Ethernet: reflected polynomial 0xedb88320. The register starts as
// 0xffffffff, and the result is exclusive-ored with 0xffffffff.
//
// Thread-safe: no state. Cost: O(size), tens of GB/s in cache.
#ifndef SYSTOLE_CORE_CHECKSUM_CRC32_H_
#define SYSTOLE_CORE_CHECKSUM_CRC32_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace systole {

// The CRC-32 of `bytes`; 0 for no bytes.
uint32_t Crc32(absl::string_view bytes);

}  // namespace systole

#endif  // SYSTOLE_CORE_CHECKSUM_CRC32_H_
