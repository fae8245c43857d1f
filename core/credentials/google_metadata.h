// The access tokens that the metadata server of Google's cloud gives to the machine of this
// process, or to its Kubernetes pod.
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

  // Nullopt: there is no metadata server of Google, or the machine has no service account. Each of
  // these signs alone counts as "there is no server":
  //   1. No connection is made within a second. At its start, a process tries several times
  //      (MetadataLooks).
  //   2. The service that answers is not Google's.
  //   3. NO_GCE_CHECK is "true".
  // Signs 1 and 2 are errors if the server has given a token before, or if GCE_METADATA_HOST names
  // the server. Errors of GoogleTokenSource::Get().
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
