#include "core/credentials/aws_settings.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/aws_profile.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The first of the two variables that is not empty; "" if both are.
std::string FirstOf(const CredentialSurroundings& surroundings, const char* first,
                    const char* second) {
  const std::string value = surroundings.variable(first);
  return value.empty() ? surroundings.variable(second) : value;
}

// `service` is the service's name in a [services] section of AWS's configuration, such as "s3".
absl::StatusOr<std::string> EndpointOf(const CredentialSurroundings& surroundings,
                                       const char* variable, const char* service) {
  if (absl::EqualsIgnoreCase(surroundings.variable("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"),
                             "true")) {
    return "";
  }
  if (std::string value = FirstOf(surroundings, variable, "AWS_ENDPOINT_URL"); !value.empty()) {
    return value;
  }
  SYSTOLE_ASSIGN_OR_RETURN(const AwsProfile profile, ReadAwsProfile(surroundings));
  if (profile.services.contains(service)) {
    return absl::FailedPreconditionError(
        absl::StrCat(profile.Shown(), " has settings for ", service,
                     " in a section of services, which Systole does not read; set ", variable));
  }
  return profile.Get("endpoint_url");
}

}  // namespace

absl::StatusOr<std::string> AwsRegionOfEnvironment(const CredentialSurroundings& surroundings) {
  std::string value = FirstOf(surroundings, "AWS_REGION", "AWS_DEFAULT_REGION");
  if (!value.empty()) return value;
  SYSTOLE_ASSIGN_OR_RETURN(const AwsProfile profile, ReadAwsProfile(surroundings));
  return profile.Get("region");
}

absl::StatusOr<std::string> S3EndpointOfEnvironment(const CredentialSurroundings& surroundings) {
  return EndpointOf(surroundings, "AWS_ENDPOINT_URL_S3", "s3");
}

absl::StatusOr<std::string> StsEndpointOfEnvironment(const CredentialSurroundings& surroundings) {
  return EndpointOf(surroundings, "AWS_ENDPOINT_URL_STS", "sts");
}

absl::StatusOr<std::string> AwsDomainOfRegion(absl::string_view region,
                                              absl::string_view endpoint_variable) {
  if (absl::StartsWith(region, "cn-")) return "amazonaws.com.cn";
  for (const char* prefix : {"us-iso", "eu-iso", "eusc-"}) {
    if (!absl::StartsWith(region, prefix)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the servers of the region '", ForeignName(region),
                     "' have a domain that is not known here; set ", endpoint_variable,
                     " to the address of the service"));
  }
  if (absl::EndsWith(region, "-global")) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", ForeignName(region),
                     "' is not a region with servers; set AWS_REGION to a region "
                     "such as us-east-1, or ",
                     endpoint_variable, " to the address of the service"));
  }
  return "amazonaws.com";
}

}  // namespace systole
