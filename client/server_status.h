// Asks a server how it is: version, streams, memory, processor time.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_SERVER_STATUS_H_
#define SYSTOLE_CLIENT_SERVER_STATUS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "systole/v1/service.pb.h"

namespace systole {

// Connects, asks, waits for the answer.
//   InvalidArgument   `address` is no server's address.
//   Unavailable, DeadlineExceeded  no answer within `timeout`; names the server.
absl::StatusOr<v1::ServerStatusResponse> AskServerStatus(const std::string& address,
                                                         absl::Duration timeout);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SERVER_STATUS_H_
