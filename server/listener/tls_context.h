// TLS by OpenSSL for a server that does not speak gRPC. Makes a context from the content of
// TlsFiles, with the same rules as for gRPC, and reads the names in a client's certificate.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_LISTENER_TLS_CONTEXT_H_
#define SYSTOLE_SERVER_LISTENER_TLS_CONTEXT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/listener/tls_files.h"

struct ssl_ctx_st;
struct ssl_st;

namespace systole {

struct FreeTlsContext {
  void operator()(ssl_ctx_st* context) const;
};
// OpenSSL's SSL_CTX.
using TlsContext = std::unique_ptr<ssl_ctx_st, FreeTlsContext>;

// Speaks only TLS 1.2 and 1.3. If `material` has a CA of clients, a client must show a certificate
// that this CA has issued. No session is resumed: a client shows its certificate each time.
//   InvalidArgument  OpenSSL does not take a part of `material`, although ReadTlsFiles() took it.
absl::StatusOr<TlsContext> MakeTlsContext(const TlsMaterial& material);

// The DNS and URI names (SAN) of the certificate by which the client was verified. Empty if there
// was no certificate. `connection` is OpenSSL's SSL, after its handshake.
std::vector<std::string> CertificateNames(const ssl_st* connection);

}  // namespace systole

#endif  // SYSTOLE_SERVER_LISTENER_TLS_CONTEXT_H_
