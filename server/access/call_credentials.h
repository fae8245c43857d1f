// Reads the credentials of a call, and the machine that the call came from.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_ACCESS_CALL_CREDENTIALS_H_
#define SYSTOLE_SERVER_ACCESS_CALL_CREDENTIALS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/server_context.h"
#include "server/access/access_policy.h"

namespace systole {

// The hash of the caller's token. `authorization`: the values of this key in a call's metadata or
// in a request's headers. Nullopt if there is no value.
//   Unauthenticated  the values are not a single "Bearer TOKEN".
absl::StatusOr<std::optional<TokenHash>> TokenOf(absl::Span<const absl::string_view> authorization);

// The credentials of the call.
//   Unauthenticated  there is an `authorization`, but it is not a single "Bearer TOKEN".
absl::StatusOr<Credentials> CredentialsOf(const grpc::CallbackServerContext& context);

// The peer's machine, which is its address without the port. The port differs between connections.
// `peer` is written as by gRPC: "ipv4:192.0.2.1:4711", "ipv6:%5B::1%5D:4711", "unix:/path".
std::string HostOfPeer(absl::string_view peer);

}  // namespace systole

#endif  // SYSTOLE_SERVER_ACCESS_CALL_CREDENTIALS_H_
