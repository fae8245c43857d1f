// How a client reaches its servers, and who it says it is: TLS, certificates, a token.
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
  // Encrypt, and check the server's certificate. Never falls back to plain text. Without it
  // nothing is encrypted, as befits loopback, "unix:" and networks that are trusted.
  bool tls = false;
  // Who vouches for servers; empty: whom the system trusts.
  std::string ca_file;
  // What proves to the server who this client is. Both or none.
  std::string certificate_file;
  std::string key_file;
  // The name that the servers' certificates are for; empty: the name in their addresses.
  std::string server_name;
  // A file that holds a token; the server's `systole token` made it. Empty: the file that
  // $SYSTOLE_TOKEN_FILE names, or the token in $SYSTOLE_TOKEN, or none. Read again with each call,
  // so it may be replaced while a feed runs. Goes only over TLS, loopback and "unix:".
  std::string token_file;
};

// What the PEM files of a ServerSecurity hold; empty where none is named.
struct TlsTexts {
  std::string ca;
  std::string certificate;
  std::string key;

  friend bool operator==(const TlsTexts&, const TlsTexts&) = default;
};

// What a connection is made with: the files of a ServerSecurity, read and checked.
//
// Thread-safe.
class ChannelSecurity {
 public:
  // Plain text, no token.
  ChannelSecurity() = default;

  // `servers` as in FeedClientOptions.
  //   InvalidArgument    certificate without key or the reverse; TLS files without `tls`; a token
  //                      that is none, or that would go to one of `servers` in plain text; no one
  //                      name for the certificates of all servers.
  //   PermissionDenied   other users can read the token or the key.
  //   Errors of ReadSmallFile(); each names the file.
  static absl::StatusOr<std::shared_ptr<const ChannelSecurity>> Open(
      const ServerSecurity& security, const std::vector<std::string>& servers);

  // For connections that begin now. The files are read again: while they hold the same, the same
  // object is returned. One that cannot be read any more leaves what was read last.
  std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials() const ABSL_LOCKS_EXCLUDED(mu_);
  bool tls() const { return security_.tls; }
  // The name to check instead of the address's; empty: none.
  const std::string& server_name() const { return security_.server_name; }

  // Adds the token, if there is one and nobody sees it on the way, to a call to `address`. A file
  // that cannot be read any more leaves the token that was read last.
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
