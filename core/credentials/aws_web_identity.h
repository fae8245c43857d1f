// AWS credentials for a token that another service has issued, such as the token of a Kubernetes
// service account.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_CREDENTIALS_AWS_WEB_IDENTITY_H_
#define SYSTOLE_CORE_CREDENTIALS_AWS_WEB_IDENTITY_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/credentials/aws_keys.h"
#include "core/credentials/aws_profile.h"
#include "core/credentials/credential_cache.h"
#include "core/credentials/credential_servers.h"
#include "core/credentials/credential_surroundings.h"

namespace systole {

struct WebIdentity {
  std::string token_file;
  std::string role_arn;
  std::string session_name;
  std::string named_by;  // For messages: "AWS_WEB_IDENTITY_TOKEN_FILE", or the profile.
};

// Finds the identity that AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN and AWS_ROLE_SESSION_NAME give.
// For each variable that is not set, the profile's web_identity_token_file, role_arn or
// role_session_name counts. Nullopt: no token file is named. FailedPrecondition: the role is
// missing.
absl::StatusOr<std::optional<WebIdentity>> FindWebIdentity(
    const CredentialSurroundings& surroundings, const AwsProfile& profile);

// Reads the token anew, sends it to STS, and returns the keys that STS gives for it. The address of
// STS is that of StsEndpointOfEnvironment(). If this address is empty, the region's STS is used.
// The token leaves this machine without encryption only if AWS_ENDPOINT_URL_STS has an http
// address. Errors of AwsCredentialSource::Get().
absl::StatusOr<CredentialLease<AwsCredentials>> AssumeRole(
    const WebIdentity& identity, const CredentialSurroundings& surroundings,
    CredentialServers& servers);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_AWS_WEB_IDENTITY_H_
