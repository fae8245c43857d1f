// The SIMD instruction set that the vectorised kernels of the whole program use. Highway picks the
// best one that the CPU has. Bytes are the same on every instruction set. Tests force one set after
// the other to prove this.
//
// Thread-safe to read; force a target before other threads start.
#ifndef SYSTOLE_CORE_NUMERIC_SIMD_TARGET_H_
#define SYSTOLE_CORE_NUMERIC_SIMD_TARGET_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace systole {

// The environment variable that ForceSimdTargetFromEnvironment() reads.
inline constexpr char kSimdTargetVariable[] = "SYSTOLE_SIMD_TARGET";

// Names of the targets that were compiled in and that this CPU has, best first, such as
// {"AVX3_DL", "AVX3", "AVX2", "SSE4", "SSSE3", "SCALAR"}. The last one runs everywhere.
std::vector<std::string> SupportedSimdTargets();

// The name of the target in use.
std::string CurrentSimdTarget();

// Makes every later kernel call of the process run on `name`. "" goes back to the best target.
// "EMU128" and "SCALAR" both name the portable target. Both names work, although the compiler
// builds only one of the two.
//   InvalidArgument  no such target, or this CPU lacks it. The message lists the targets that the
//                    CPU has.
absl::Status ForceSimdTarget(absl::string_view name);

// ForceSimdTarget with the value of SYSTOLE_SIMD_TARGET; OK and no change when it is unset or
// empty. Every program calls this once at the start of main and stops on an error. If a program
// ignored a misspelt name and ran on the default target, a comparison of targets would prove
// nothing.
absl::Status ForceSimdTargetFromEnvironment();

}  // namespace systole

#endif  // SYSTOLE_CORE_NUMERIC_SIMD_TARGET_H_
