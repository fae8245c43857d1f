// gRPC's server credentials for the connections of one user on a Unix socket: plain text, and every
// call can tell whose it is. gRPC 1.51 itself tells a call nothing of the peer's user.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_DOOR_USER_CREDENTIALS_H_
#define SYSTOLE_SERVER_DOOR_USER_CREDENTIALS_H_

#include <sys/types.h>

#include <memory>
#include <optional>

#include "grpcpp/security/auth_context.h"
#include "grpcpp/security/server_credentials.h"

namespace systole {

// For connections on a Unix socket whose peer is `user`; the caller has asked the kernel.
std::shared_ptr<grpc::ServerCredentials> CredentialsOfUser(uid_t user);

// The user with whose credentials the connection of a call was let in; nullopt for all others.
// `context` is ServerContextBase::auth_context().
std::optional<uid_t> UserOf(const grpc::AuthContext& context);

}  // namespace systole

#endif  // SYSTOLE_SERVER_DOOR_USER_CREDENTIALS_H_
