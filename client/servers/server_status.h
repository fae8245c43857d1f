// Asks a server about its counters, its state and its datasets. Texts in the answers are fit to
// print, and counts are in range (client/servers/server_answer.h).
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_SERVERS_SERVER_STATUS_H_
#define SYSTOLE_CLIENT_SERVERS_SERVER_STATUS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/servers/server_security.h"
#include "systole/v1/service.pb.h"

namespace systole {

// Each function asks the server at `address` ("HOST:PORT" or "unix:PATH") and waits for the answer.
//   InvalidArgument   `address` has neither form. Also the errors of ChannelSecurity::Open().
//   Unauthenticated   the server needs a credential.
//   Unavailable       no process listens at `address` (this error comes at once), or no
//                     connection could be made within `timeout`; says why the first attempt
//                     failed.
//   DeadlineExceeded  no answer within `timeout`; names the server.
//   ResourceExhausted the answer is larger than kMaxChunkMessageBytes.
//   Internal          the answer holds an impossible number; names the field.
absl::StatusOr<v1::ServerStatusResponse> AskServerStatus(const std::string& address,
                                                         absl::Duration timeout,
                                                         const ServerSecurity& security = {});
absl::StatusOr<v1::ListDatasetsResponse> AskDatasets(const std::string& address,
                                                     absl::Duration timeout,
                                                     const ServerSecurity& security = {});
//   NotFound          the server has no dataset of this name.
absl::StatusOr<v1::DescribeDatasetResponse> AskDataset(const std::string& address,
                                                       const std::string& dataset,
                                                       absl::Duration timeout,
                                                       const ServerSecurity& security = {});

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SERVERS_SERVER_STATUS_H_
