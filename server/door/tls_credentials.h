// gRPC's server credentials over TlsFiles: TLS 1.2 and 1.3, files looked at with every connection.
//
// Not over FileWatcherCertificateProvider: that one takes a key and a certificate that do not
// belong together, and the server then refuses every client.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_DOOR_TLS_CREDENTIALS_H_
#define SYSTOLE_SERVER_DOOR_TLS_CREDENTIALS_H_

#include <memory>
#include <string>
#include <vector>

#include "grpcpp/security/auth_context.h"
#include "grpcpp/security/server_credentials.h"
#include "server/door/tls_files.h"

namespace systole {

// Running connections keep what they began with. Keep what is returned until the server that uses
// it is destroyed.
std::shared_ptr<grpc::ServerCredentials> TlsCredentialsOver(std::unique_ptr<TlsFiles> files);

// The names that the client of a call has proved by its certificate: its subject alternative names
// (DNS names, addresses, URIs). Its common name is not among
// them. Empty without a verified certificate. `context` is ServerContextBase::auth_context().
std::vector<std::string> AuthenticatedNames(const grpc::AuthContext& context);

}  // namespace systole

#endif  // SYSTOLE_SERVER_DOOR_TLS_CREDENTIALS_H_
