// Reads the credentials of a gRPC call, and the machine that the call came from.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_ACCESS_CALL_CREDENTIALS_H_
#define SYSTOLE_SERVER_ACCESS_CALL_CREDENTIALS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "server/access/access_policy.h"

namespace systole {

// The credentials of the call.
//   Unauthenticated  there is an `authorization`, but it is not a single "Bearer TOKEN".
absl::StatusOr<Credentials> CredentialsOf(const grpc::CallbackServerContext& context);

// The peer's machine: its address without the port, which differs between connections. `peer` is
// written as by gRPC: "ipv4:192.0.2.1:4711", "ipv6:%5B::1%5D:4711", "unix:/path".
std::string HostOfPeer(absl::string_view peer);

}  // namespace systole

#endif  // SYSTOLE_SERVER_ACCESS_CALL_CREDENTIALS_H_
