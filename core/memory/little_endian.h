// Numbers in bytes, least significant first, as files and messages hold them.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_MEMORY_LITTLE_ENDIAN_H_
#define SYSTOLE_CORE_MEMORY_LITTLE_ENDIAN_H_

#include <bit>
#include <cstdint>
#include <cstring>

namespace systole {

static_assert(std::endian::native == std::endian::little, "Loads and stores copy bytes");

inline uint16_t LoadU16Le(const char* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}
inline uint32_t LoadU32Le(const char* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}
inline uint64_t LoadU64Le(const char* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}
inline void StoreU32Le(uint32_t value, char* p) { std::memcpy(p, &value, sizeof(value)); }
inline void StoreU64Le(uint64_t value, char* p) { std::memcpy(p, &value, sizeof(value)); }

}  // namespace systole

#endif  // SYSTOLE_CORE_MEMORY_LITTLE_ENDIAN_H_
