// The access tokens of the machine of Google's cloud that this process runs on, or of its
// Kubernetes pod, by the metadata server.
#ifndef SYSTOLE_CORE_CREDENTIALS_GOOGLE_METADATA_H_
#define SYSTOLE_CORE_CREDENTIALS_GOOGLE_METADATA_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/credentials/credential_cache.h"
#include "core/credentials/credential_servers.h"
#include "core/credentials/credential_surroundings.h"
#include "core/credentials/google_tokens.h"
#include "core/credentials/metadata_looks.h"

namespace systole {

// Thread-compatible. Borrows both arguments.
class GoogleMetadata {
 public:
  GoogleMetadata(const CredentialSurroundings& surroundings, CredentialServers& servers)
      : surroundings_(surroundings),
        servers_(servers),
        looks_(surroundings, servers, "google", kHostVariable) {}

  // Nullopt: there is no such server, or the machine has no service account. There is no server if
  // no connection is made within a second (at first also not in the next attempts, see
  // MetadataLooks), if another service than Google's answers, or if NO_GCE_CHECK is "true". Once
  // the server has given a token, or if GCE_METADATA_HOST names it, the first two of these are
  // errors. Errors of GoogleTokenSource::Get().
  absl::StatusOr<std::optional<CredentialLease<std::string>>> Ask(GoogleAccess access);

 private:
  static constexpr char kHostVariable[] = "GCE_METADATA_HOST";

  absl::StatusOr<std::optional<CredentialLease<std::string>>> AskOnce(GoogleAccess access);

  const CredentialSurroundings& surroundings_;
  CredentialServers& servers_;
  MetadataLooks<std::string> looks_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_GOOGLE_METADATA_H_
