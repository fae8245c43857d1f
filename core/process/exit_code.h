// The exit codes of our programs. `systole-server` and every command of `systole` use the same
// codes.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_PROCESS_EXIT_CODE_H_
#define SYSTOLE_CORE_PROCESS_EXIT_CODE_H_

#include "absl/status/status.h"

namespace systole {

inline constexpr int kExitOk = 0;
inline constexpr int kExitDamage = 1;       // The data are damaged, or no longer what they were.
inline constexpr int kExitUsage = 2;        // The command line, a file or the spec cannot be used.
inline constexpr int kExitNotFound = 3;     // No such file, shard or dataset.
inline constexpr int kExitUnavailable = 4;  // No answer, or the address is in use. Try again later.
inline constexpr int kExitInternal = 5;     // A bug, or the machine's fault (full disk, I/O error).

// For `--help` and the README.
inline constexpr char kExitCodesText[] =
    "Exit codes: 0 ok, 1 damage found, 2 usage or spec, 3 not found, 4 unavailable, 5 internal.";

// The exit code for each status code:
//   0  OK
//   1  DataLoss; FailedPrecondition: a shard that was replaced, servers that differ, a resume token
//      of other data
//   2  InvalidArgument, OutOfRange, AlreadyExists, PermissionDenied, Unauthenticated;
//      ResourceExhausted: over a stated limit, so trying again does not help
//   3  NotFound
//   4  Unavailable, DeadlineExceeded
//   5  everything else
int ExitCodeFor(const absl::Status& status);

}  // namespace systole

#endif  // SYSTOLE_CORE_PROCESS_EXIT_CODE_H_
