// The addresses of --listen and --admin: HOST:PORT, and which of them may be listened on.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_LISTENER_LISTEN_ADDRESS_H_
#define SYSTOLE_SERVER_LISTENER_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/listener/listening_sockets.h"

namespace systole {

struct HostAndPort {
  std::string host;
  int port = 0;
};

// Splits "HOST:PORT".
//   InvalidArgument  `text` is not HOST:PORT. The message names `flag`, and ends with `wanted`.
absl::StatusOr<HostAndPort> HostAndPortOf(absl::string_view flag, absl::string_view text,
                                          absl::string_view wanted);

// Whether a server may listen at `host`.
//   InvalidArgument  other machines can reach it, and there is neither TLS nor `insecure`. The
//                    message names `text`, the whole address.
absl::Status CheckReach(absl::string_view text, absl::string_view host, bool tls, bool insecure);

// Does what ListenOnTcp() does. An error names `flag` and `text`, and says what to do.
absl::StatusOr<ListeningSockets> ListenAt(absl::string_view flag, absl::string_view text,
                                          const HostAndPort& where);

}  // namespace systole

#endif  // SYSTOLE_SERVER_LISTENER_LISTEN_ADDRESS_H_
