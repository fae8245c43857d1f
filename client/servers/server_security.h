// How a client reaches its servers, and how it shows its identity: TLS, certificates, a token.
#ifndef SYSTOLE_CLIENT_SERVERS_SERVER_SECURITY_H_
#define SYSTOLE_CLIENT_SERVERS_SERVER_SECURITY_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/concurrency/mutex.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/credentials.h"

namespace systole {

// Thread-compatible value type. Files are PEM.
struct ServerSecurity {
  // If true, connections are encrypted, and the server's certificate is checked. A feed then never
  // falls back to plain text. Use false only for loopback, "unix:" and trusted networks.
  bool tls = false;
  // A file with the CAs that sign the servers' certificates; empty: the CAs of the system.
  std::string ca_file;
  // This client's certificate and its key. Give both files or none.
  std::string certificate_file;
  std::string key_file;
  // The name that the servers' certificates are for; empty: the name in their addresses.
  std::string server_name;
  // A file with a token made by `systole token`. Empty: the file that $SYSTOLE_TOKEN_FILE names,
  // else the token in $SYSTOLE_TOKEN, else no token. The file is read again with each call, so it
  // may be replaced while a feed runs. A token is sent only over TLS, loopback and "unix:".
  std::string token_file;
};

// The name that the certificates of `servers` (FeedClientOptions::servers) must have. Empty: each
// certificate must have the name in its server's address. The client connects to the servers behind
// "dns:///NAME:PORT" by their addresses, but the certificates of these servers are for NAME.
//   InvalidArgument   `security` has TLS and no server_name, and `servers` has two dns:/// names,
//                     or a dns:/// name and other addresses.
absl::StatusOr<std::string> NameInCertificates(const ServerSecurity& security,
                                               const std::vector<std::string>& servers);

// The contents of a ServerSecurity's PEM files; empty for a file that is not named.
struct TlsTexts {
  std::string ca;
  std::string certificate;
  std::string key;

  friend bool operator==(const TlsTexts&, const TlsTexts&) = default;
};

// The checked contents of a ServerSecurity's files. Has the credentials for connections, and the
// token for calls.
//
// Thread-safe.
class ChannelSecurity {
 public:
  // Plain text, no token.
  ChannelSecurity() = default;

  // `servers` is FeedClientOptions::servers.
  //   InvalidArgument    a certificate without its key, or a key without its certificate; TLS files
  //                      without `tls`; a file without a token; a token that would go to one of
  //                      `servers` in plain text; the error of NameInCertificates().
  //   PermissionDenied   other users can read the token or the key.
  //   Errors of ReadSmallFile(); each names the file.
  static absl::StatusOr<std::shared_ptr<const ChannelSecurity>> Open(
      const ServerSecurity& security, const std::vector<std::string>& servers);

  // Credentials for connections that begin now. Reads the files again, and returns the same object
  // while their contents are the same. If a file cannot be read any more, the last contents are
  // used.
  std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials() const ABSL_LOCKS_EXCLUDED(mu_);
  bool tls() const { return security_.tls; }
  // The name that certificates must have; empty: the name in the server's address.
  const std::string& server_name() const { return security_.server_name; }

  // Adds the token, if there is one, to a call to `address`. Leaves the token out if it would go
  // over a network in plain text. If its file cannot be read any more, the last token is used.
  void AddToken(absl::string_view address, grpc::ClientContext& context) const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  ServerSecurity security_;
  mutable Mutex mu_;
  mutable TlsTexts texts_ ABSL_GUARDED_BY(mu_);
  mutable std::shared_ptr<grpc::ChannelCredentials> credentials_ ABSL_GUARDED_BY(mu_);
  mutable std::string token_ ABSL_GUARDED_BY(mu_);  // Empty: none.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SERVERS_SERVER_SECURITY_H_
