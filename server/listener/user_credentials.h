// gRPC's server credentials for the connections of one user on a Unix socket. The connections are
// plain text. The credentials put the user into the context of every call, which gRPC 1.51 itself
// does not do.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_LISTENER_USER_CREDENTIALS_H_
#define SYSTOLE_SERVER_LISTENER_USER_CREDENTIALS_H_

#include <sys/types.h>

#include <memory>
#include <optional>

#include "grpcpp/security/auth_context.h"
#include "grpcpp/security/server_credentials.h"

namespace systole {

// For connections on a Unix socket whose peer is `user`, as the kernel told the caller.
std::shared_ptr<grpc::ServerCredentials> CredentialsOfUser(uid_t user);

// The user whose CredentialsOfUser() a call's connection uses; nullopt if the connection uses other
// credentials.
// `context` is ServerContextBase::auth_context().
std::optional<uid_t> UserOf(const grpc::AuthContext& context);

}  // namespace systole

#endif  // SYSTOLE_SERVER_LISTENER_USER_CREDENTIALS_H_
