// gRPC's server credentials made from TlsFiles: TLS 1.2 and 1.3. The files are checked for changes
// with every connection.
//
// gRPC's FileWatcherCertificateProvider is not used, because it accepts a key and a certificate
// that do not belong together. The server would then refuse every client.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_LISTENER_TLS_CREDENTIALS_H_
#define SYSTOLE_SERVER_LISTENER_TLS_CREDENTIALS_H_

#include <memory>
#include <string>
#include <vector>

#include "grpcpp/security/auth_context.h"
#include "grpcpp/security/server_credentials.h"
#include "server/listener/tls_files.h"

namespace systole {

// Open connections keep the certificate that they began with. The result must outlive the server
// that uses it.
std::shared_ptr<grpc::ServerCredentials> TlsCredentialsOver(std::unique_ptr<TlsFiles> files);

// The subject alternative names (DNS names, addresses, URIs) of the certificate by which the client
// of a call was verified, without the certificate's common name. Empty without a verified
// certificate.
// `context` is ServerContextBase::auth_context().
std::vector<std::string> AuthenticatedNames(const grpc::AuthContext& context);

}  // namespace systole

#endif  // SYSTOLE_SERVER_LISTENER_TLS_CREDENTIALS_H_
