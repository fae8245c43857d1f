#include "core/credentials/aws_settings.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/aws_profile.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// The first of the two variables that is not empty, or the profile's setting.
absl::StatusOr<std::string> FirstOf(const CredentialSurroundings& surroundings, const char* first,
                                    const char* second, absl::string_view setting) {
  for (const char* variable : {first, second}) {
    if (std::string value = surroundings.variable(variable); !value.empty()) return value;
  }
  SYSTOLE_ASSIGN_OR_RETURN(const AwsProfile profile, ReadAwsProfile(surroundings));
  if (setting == "endpoint_url" && !profile.Get("services").empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(profile.Shown(),
                     " has addresses in a section of services, which is not read "
                     "here; set ",
                     first));
  }
  return profile.Get(setting);
}

absl::StatusOr<std::string> EndpointOf(const CredentialSurroundings& surroundings,
                                       const char* of_service) {
  if (absl::EqualsIgnoreCase(surroundings.variable("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"),
                             "true")) {
    return "";
  }
  return FirstOf(surroundings, of_service, "AWS_ENDPOINT_URL", "endpoint_url");
}

}  // namespace

absl::StatusOr<std::string> AwsRegionOfEnvironment(const CredentialSurroundings& surroundings) {
  return FirstOf(surroundings, "AWS_REGION", "AWS_DEFAULT_REGION", "region");
}

absl::StatusOr<std::string> S3EndpointOfEnvironment(const CredentialSurroundings& surroundings) {
  return EndpointOf(surroundings, "AWS_ENDPOINT_URL_S3");
}

absl::StatusOr<std::string> StsEndpointOfEnvironment(const CredentialSurroundings& surroundings) {
  return EndpointOf(surroundings, "AWS_ENDPOINT_URL_STS");
}

}  // namespace systole
