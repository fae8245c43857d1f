#include "core/checksum/upper_parts.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace systole {

#if defined(__x86_64__)
namespace {

__attribute__((target("avx"))) void ZeroUpper() { _mm256_zeroupper(); }

}  // namespace

void ClearUpperParts() {
  if (__builtin_cpu_supports("avx")) ZeroUpper();
}
#else
void ClearUpperParts() {}
#endif

}  // namespace systole
