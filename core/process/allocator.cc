#include "core/process/allocator.h"

#include <cstdint>
#include <cstdlib>  // Defines __GLIBC__ if the C library is glibc.
#include <fstream>
#include <string>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace systole {

void KeepFreedMemory([[maybe_unused]] int arenas) {
#if defined(__GLIBC__)
  mallopt(M_ARENA_MAX, arenas);
  // malloc maps each block above a certain size on its own. Each of the two calls below also fixes
  // this size at 128 KiB. Otherwise malloc would raise this size, up to 32 MiB.
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_TOP_PAD, 16 << 20);
#endif
}

void ReturnFreedMemory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

int64_t OwnResidentBytes() {
  std::ifstream status("/proc/self/status");
  int64_t kib = 0;
  for (std::string word; status >> word;) {
    int64_t value = 0;
    if ((word == "RssAnon:" || word == "RssShmem:") && status >> value) kib += value;
  }
  return kib << 10;
}

}  // namespace systole
