// The socket that a service manager opened before it started this process, as sd_listen_fds(3)
// describes it.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_SERVICE_MANAGER_PASSED_SOCKET_H_
#define SYSTOLE_SERVER_SERVICE_MANAGER_PASSED_SOCKET_H_

#include <sys/types.h>

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "core/descriptor/owned_fd.h"

namespace systole {

// The first descriptor that a manager passes.
inline constexpr int kFirstPassedDescriptor = 3;

// Takes over the socket that $LISTEN_FDS and $LISTEN_PID announce to the process `own`: a Unix
// socket at `path` that listens. Makes the socket non-blocking and close-on-exec. Returns no
// descriptor if no socket was passed. `path` is empty if the server is not to listen on a Unix
// socket. `variable` returns the value of an environment variable, "" if it is not set. Call this
// function once, and before anything else can have used the descriptor.
//   InvalidArgument  several descriptors were passed, or one that is not a Unix socket that listens
//                    at `path`.
absl::StatusOr<OwnedFd> TakePassedSocket(
    const std::string& path, const std::function<std::string(const char* name)>& variable,
    pid_t own, int first = kFirstPassedDescriptor);

}  // namespace systole

#endif  // SYSTOLE_SERVER_SERVICE_MANAGER_PASSED_SOCKET_H_
