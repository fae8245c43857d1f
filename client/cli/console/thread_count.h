// How many threads a command uses for a value of `--threads`.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_CONSOLE_THREAD_COUNT_H_
#define SYSTOLE_CLIENT_CLI_CONSOLE_THREAD_COUNT_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace systole {

// Returns `threads`, the value of `--threads`. For 0 returns the number of processors that this
// process may run on, at least 1. InvalidArgument outside [0, 1024].
absl::StatusOr<int> ThreadCount(int64_t threads);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_CONSOLE_THREAD_COUNT_H_
