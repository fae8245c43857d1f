#include "core/checksum/upper_parts.h"

#include <immintrin.h>

namespace systole {
namespace {

__attribute__((target("avx"))) void ZeroUpper() { _mm256_zeroupper(); }

}  // namespace

void ClearUpperParts() {
  if (__builtin_cpu_supports("avx")) ZeroUpper();
}

}  // namespace systole
