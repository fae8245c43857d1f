// Sets, for one scope, the floating-point state that the matrix and vector units are defined in:
// round to nearest even, subnormal results become zero (FTZ), subnormal inputs count as zero (DAZ),
// no traps. The state belongs to a thread, and pool threads also do other work. So each task of the
// emulator creates a FlushScope, whose destructor restores the previous state.
//
// aarch64 flushes a result that is subnormal before rounding. x86 flushes a result that is
// subnormal after rounding. So if a subnormal result would round up to the smallest normal number,
// aarch64 gives 0 and x86 gives that number. For a result near the smallest normal number,
// the chance of this is about 2^-24.
//
// Single-thread: create and destroy on the same thread. Scopes nest.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_FLUSH_SCOPE_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_FLUSH_SCOPE_H_

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#error "FlushScope supports only x86-64 and aarch64"
#endif

#include <cstdint>

namespace systole::emulator {

class FlushScope {
 public:
  FlushScope() : saved_(State()) { SetState(kFlushing); }
  ~FlushScope() { SetState(saved_); }
  FlushScope(const FlushScope&) = delete;
  FlushScope& operator=(const FlushScope&) = delete;

  // This thread's state, without the bits that record which exceptions have happened.
  static uint64_t ControlBits() { return State() & ~kRecords; }

 private:
#if defined(__x86_64__)
  static constexpr uint64_t kRecords = 0x3f;
  // All exceptions masked; FTZ; DAZ.
  static constexpr uint64_t kFlushing = 0x1f80 | 0x8000 | 0x0040;
  static uint64_t State() { return _mm_getcsr(); }
  static void SetState(uint64_t state) { _mm_setcsr(static_cast<uint32_t>(state)); }
#else
  // The records are in another register, FPSR.
  static constexpr uint64_t kRecords = 0;
  static constexpr uint64_t kFlushing = uint64_t{1} << 24;  // FPCR.FZ flushes inputs and results.
  static uint64_t State() {
    uint64_t state;
    asm volatile("mrs %0, fpcr" : "=r"(state) : : "memory");
    return state;
  }
  static void SetState(uint64_t state) { asm volatile("msr fpcr, %0" : : "r"(state) : "memory"); }
#endif
  const uint64_t saved_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_FLUSH_SCOPE_H_
