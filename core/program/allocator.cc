#include "core/program/allocator.h"

#include <cstdlib>  // Defines __GLIBC__ where it is one.

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace systole {

void KeepFreedMemory([[maybe_unused]] int arenas) {
#if defined(__GLIBC__)
  mallopt(M_ARENA_MAX, arenas);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_TOP_PAD, 16 << 20);
#endif
}

}  // namespace systole
