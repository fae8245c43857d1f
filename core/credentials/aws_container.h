// The AWS credentials of a container that runs in ECS, or in EKS with EKS's agent.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_CREDENTIALS_AWS_CONTAINER_H_
#define SYSTOLE_CORE_CREDENTIALS_AWS_CONTAINER_H_

#include <optional>

#include "absl/status/statusor.h"
#include "core/credentials/aws_keys.h"
#include "core/credentials/credential_cache.h"
#include "core/credentials/credential_servers.h"
#include "core/credentials/credential_surroundings.h"

namespace systole {

// Asks the address in AWS_CONTAINER_CREDENTIALS_RELATIVE_URI. If this variable is not set, asks the
// address in AWS_CONTAINER_CREDENTIALS_FULL_URI. Sends the authorization of
// AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE or AWS_CONTAINER_AUTHORIZATION_TOKEN. Nullopt: neither
// address is set. Errors of AwsCredentialSource::Get().
absl::StatusOr<std::optional<CredentialLease<AwsCredentials>>> AskContainer(
    const CredentialSurroundings& surroundings, CredentialServers& servers);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_AWS_CONTAINER_H_
