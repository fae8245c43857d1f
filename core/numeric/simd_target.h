// The SIMD instruction set (target) that the vectorised kernels of the whole program use. Highway
// picks the best target that the CPU has. Results are the same bytes on every target. To prove
// this, tests force one target after the other.
//
// Thread-safe for readers. Force a target before other threads start.
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
// {"AVX3_DL", "AVX3", "AVX2", "SSE4", "SSSE3", "SCALAR"}. The last target runs on every CPU.
std::vector<std::string> SupportedSimdTargets();

// The name of the target in use.
std::string CurrentSimdTarget();

// Makes every later kernel call of the process run on `name`. "" goes back to the best target.
// "EMU128" and "SCALAR" are the same here: both name the portable target that was compiled in.
//   InvalidArgument  no such target, or this CPU lacks it. The message lists the targets that the
//                    CPU has.
absl::Status ForceSimdTarget(absl::string_view name);

// Calls ForceSimdTarget() with the value of SYSTOLE_SIMD_TARGET. If the variable is unset or empty,
// returns OK and changes nothing. Every program calls this function once at the start of main(),
// and stops on an error. If a program ignored a misspelt name and ran on the default target, a
// comparison of targets would prove nothing.
absl::Status ForceSimdTargetFromEnvironment();

}  // namespace systole

#endif  // SYSTOLE_CORE_NUMERIC_SIMD_TARGET_H_
