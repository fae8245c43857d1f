#include "core/checksum/crc32c.h"

#include <isa-l/crc.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/checksum/upper_parts.h"

namespace systole {
namespace {

// ISA-L takes the length as an int. A multiple of 64 keeps later pieces as aligned as the first.
constexpr size_t kLargestPiece = size_t{1} << 30;

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t StepU64(uint32_t crc_register, uint64_t value) {
  return static_cast<uint32_t>(_mm_crc32_u64(crc_register, value));
}
#endif

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes) {
  // crc32_iscsi does not invert the register, so this function does, before and after. crc32_iscsi
  // takes a pointer that is not const, but only reads from it.
  uint32_t crc_register = ~crc;
  while (!bytes.empty()) {
    const size_t piece = std::min(bytes.size(), kLargestPiece);
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    crc_register = crc32_iscsi(data, static_cast<int>(piece), crc_register);
    bytes.remove_prefix(piece);
  }
  ClearUpperParts();
  return ~crc_register;
}

uint32_t Crc32c(absl::string_view bytes) { return ExtendCrc32c(0, bytes); }

uint32_t Crc32cOfU64(uint64_t value) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~StepU64(~uint32_t{0}, value);
#endif
  char bytes[sizeof(value)];
  std::memcpy(bytes, &value, sizeof(value));
  return Crc32c(absl::string_view(bytes, sizeof(bytes)));
}

}  // namespace systole
