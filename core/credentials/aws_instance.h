// The AWS credentials of the EC2 instance that this process runs on. They come from the instance's
// metadata service (IMDSv2).
#ifndef SYSTOLE_CORE_CREDENTIALS_AWS_INSTANCE_H_
#define SYSTOLE_CORE_CREDENTIALS_AWS_INSTANCE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "core/credentials/aws_keys.h"
#include "core/credentials/credential_cache.h"
#include "core/credentials/credential_servers.h"
#include "core/credentials/credential_surroundings.h"
#include "core/credentials/metadata_looks.h"

namespace systole {

// Thread-compatible. Borrows both arguments.
class AwsInstance {
 public:
  AwsInstance(const CredentialSurroundings& surroundings, CredentialServers& servers)
      : surroundings_(surroundings),
        servers_(servers),
        looks_(surroundings, servers, "amazon", kEndpointVariable) {}

  // Nullopt: this machine is not an EC2 instance, or the instance has no role. Each of these signs
  // alone leads to nullopt:
  //   1. No connection is made within a second. At its start, a process tries several times
  //      (MetadataLooks).
  //   2. A service refuses, and it has never given credentials.
  //   3. AWS_EC2_METADATA_DISABLED is "true".
  // Once the service has given credentials, signs 1 and 2 are errors. Errors of
  // AwsCredentialSource::Get().
  absl::StatusOr<std::optional<CredentialLease<AwsCredentials>>> Ask();

 private:
  static constexpr char kEndpointVariable[] = "AWS_EC2_METADATA_SERVICE_ENDPOINT";

  absl::StatusOr<std::optional<CredentialLease<AwsCredentials>>> AskOnce();

  const CredentialSurroundings& surroundings_;
  CredentialServers& servers_;
  MetadataLooks<AwsCredentials> looks_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_AWS_INSTANCE_H_
