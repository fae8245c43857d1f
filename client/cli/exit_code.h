// What the `systole` command tells its caller by its exit code, the same in every subcommand.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_EXIT_CODE_H_
#define SYSTOLE_CLIENT_CLI_EXIT_CODE_H_

#include "absl/status/status.h"

namespace systole {

inline constexpr int kExitOk = 0;
inline constexpr int kExitDamage = 1;       // Bytes failed a check.
inline constexpr int kExitUsage = 2;        // The command line or the spec cannot be served.
inline constexpr int kExitNotFound = 3;     // No such file, shard or dataset.
inline constexpr int kExitUnavailable = 4;  // No server answered in time; the same may work later.
inline constexpr int kExitInternal = 5;     // Our bug, or the machine's (disk full, I/O error).

// The one mapping:
//   OK                                      0
//   DataLoss                                1
//   InvalidArgument, OutOfRange             2  what was asked for is wrong in itself
//   FailedPrecondition, AlreadyExists       2  ... or does not fit what is there: a changed
//   dataset,
//                                              servers that differ, a token of another feed
//   ResourceExhausted                       2  ... or is over a stated limit: repeating it is no
//   use PermissionDenied, Unauthenticated       2  ... or is not allowed NotFound 3 Unavailable,
//   DeadlineExceeded           4 everything else                         5
int ExitCodeFor(const absl::Status& status);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_EXIT_CODE_H_
