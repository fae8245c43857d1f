// Sets, for one scope, the floating-point state that the matrix and vector units are defined in:
// round to nearest even, subnormal results become zero (FTZ), subnormal inputs count as zero (DAZ),
// no traps. The state belongs to a thread, and pool threads also do other work. So every piece of
// emulator work opens a FlushScope, which restores the former state when it closes.
//
// Single-thread: create and destroy on the same thread. Scopes nest.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_FLUSH_SCOPE_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_FLUSH_SCOPE_H_

#include <xmmintrin.h>

#include <cstdint>

namespace systole::emulator {

class FlushScope {
 public:
  FlushScope() : saved_(_mm_getcsr()) { _mm_setcsr(kAllMasked | kFlushToZero | kZeroInputs); }
  ~FlushScope() { _mm_setcsr(saved_); }
  FlushScope(const FlushScope&) = delete;
  FlushScope& operator=(const FlushScope&) = delete;

 private:
  static constexpr uint32_t kAllMasked = 0x1f80;
  static constexpr uint32_t kFlushToZero = 0x8000;
  static constexpr uint32_t kZeroInputs = 0x0040;
  const uint32_t saved_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_FLUSH_SCOPE_H_
