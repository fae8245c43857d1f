// The region and the addresses for requests to AWS, from the variables and the configuration file
// of AWS's tools.
//
// Thread-safe: no state. Each call reads variables and files anew.
#ifndef SYSTOLE_CORE_CREDENTIALS_AWS_SETTINGS_H_
#define SYSTOLE_CORE_CREDENTIALS_AWS_SETTINGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/credentials/credential_surroundings.h"

namespace systole {

// AWS_REGION, else AWS_DEFAULT_REGION, else `region` of the profile. "" if none of them is set. The
// value is returned as it is written, so the caller must check it. Returns the errors of
// ReadAwsProfile().
absl::StatusOr<std::string> AwsRegionOfEnvironment(const CredentialSurroundings& surroundings = {});

// AWS_ENDPOINT_URL_S3, else AWS_ENDPOINT_URL, else `endpoint_url` of the profile. "" if none of
// them is set, or if AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is "true". The value is returned as it is
// written, so the caller must check whether it is an address. Returns the errors of
// ReadAwsProfile(). If no variable is set and AwsProfile::services has S3, returns
// FailedPrecondition.
absl::StatusOr<std::string> S3EndpointOfEnvironment(
    const CredentialSurroundings& surroundings = {});

// Like S3EndpointOfEnvironment(), but for STS, the service that gives credentials for a web
// identity. The variable AWS_ENDPOINT_URL_STS takes the place of AWS_ENDPOINT_URL_S3.
absl::StatusOr<std::string> StsEndpointOfEnvironment(
    const CredentialSurroundings& surroundings = {});

// The domain of AWS's servers in a region. A server's name is SERVICE.REGION.DOMAIN.
//   FailedPrecondition   the domain of the region is not known here, or the region has no servers
//                        (such as aws-global). The message says to set the variable
//                        `endpoint_variable`, such as "AWS_ENDPOINT_URL_S3".
absl::StatusOr<std::string> AwsDomainOfRegion(absl::string_view region,
                                              absl::string_view endpoint_variable);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_AWS_SETTINGS_H_
