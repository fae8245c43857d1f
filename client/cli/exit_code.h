// What the `systole` command tells its caller by its exit code, the same in every subcommand.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_EXIT_CODE_H_
#define SYSTOLE_CLIENT_CLI_EXIT_CODE_H_

#include "absl/status/status.h"

namespace systole {

inline constexpr int kExitOk = 0;
inline constexpr int kExitDamage = 1;       // The data are damaged, or no longer what they were.
inline constexpr int kExitUsage = 2;        // The command line or the spec cannot be served.
inline constexpr int kExitNotFound = 3;     // No such file, shard or dataset.
inline constexpr int kExitUnavailable = 4;  // No server answered in time; the same may work later.
inline constexpr int kExitInternal = 5;     // Our bug, or the machine's (disk full, I/O error).

// The one mapping:
//   0  OK
//   1  DataLoss; FailedPrecondition: a shard that was replaced, servers that differ, a resume token
//      of other data
//   2  InvalidArgument, OutOfRange, AlreadyExists, PermissionDenied, Unauthenticated;
//      ResourceExhausted: over a stated limit, so that repeating it is no use
//   3  NotFound
//   4  Unavailable, DeadlineExceeded
//   5  everything else
int ExitCodeFor(const absl::Status& status);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_EXIT_CODE_H_
