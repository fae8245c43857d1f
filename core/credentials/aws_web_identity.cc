#include "core/credentials/aws_web_identity.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/aws_keys.h"
#include "core/credentials/aws_settings.h"
#include "core/credentials/credential_file.h"
#include "core/http/http_url.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

constexpr char kEndpoint[] = "AWS_ENDPOINT_URL_STS";

// The address of STS.
absl::StatusOr<std::string> StsUrl(const CredentialSurroundings& surroundings) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::string endpoint, StsEndpointOfEnvironment(surroundings));
  if (!endpoint.empty()) {
    const absl::StatusOr<HttpUrl> url = ParseHttpUrl(endpoint);
    if (!url.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat(kEndpoint,
                       ", AWS_ENDPOINT_URL or the profile's endpoint_url is not a web "
                       "address; want https://HOST"));
    }
    // Only AWS_ENDPOINT_URL_STS may name an address without encryption on another machine. The
    // other two settings probably name an object store, which must not get the token.
    if (const absl::Status safe = CheckSecretAddress(endpoint);
        !safe.ok() && surroundings.variable(kEndpoint).empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "AWS_ENDPOINT_URL or the profile's endpoint_url, to which the web identity's token would "
          "be sent, ",
          safe.message(), "; if this address is meant only for buckets, set ", kEndpoint,
          " to the address of STS"));
    }
    return url->Text();
  }
  SYSTOLE_ASSIGN_OR_RETURN(const std::string region, AwsRegionOfEnvironment(surroundings));
  if (region.empty()) return "https://sts.amazonaws.com/";
  // The region becomes a part of a host's name, so only these characters are allowed.
  for (const char c : region) {
    if (!absl::ascii_islower(c) && !absl::ascii_isdigit(c) && c != '-') {
      return absl::FailedPreconditionError(
          absl::StrCat("the region '", ForeignName(region),
                       "' is invalid; set AWS_REGION to a region such as us-east-1"));
    }
  }
  SYSTOLE_ASSIGN_OR_RETURN(const std::string domain, AwsDomainOfRegion(region, kEndpoint));
  return absl::StrCat("https://sts.", region, ".", domain, "/");
}

}  // namespace

absl::StatusOr<std::optional<WebIdentity>> FindWebIdentity(
    const CredentialSurroundings& surroundings, const AwsProfile& profile) {
  // As in AWS's tools, each of the three settings may come from the environment or from the
  // profile.
  const auto value = [&](const char* variable, absl::string_view setting) {
    const std::string of_environment = surroundings.variable(variable);
    return of_environment.empty() ? profile.Get(setting) : of_environment;
  };
  WebIdentity identity = {
      .token_file = value("AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file"),
      .role_arn = value("AWS_ROLE_ARN", "role_arn"),
      .session_name = value("AWS_ROLE_SESSION_NAME", "role_session_name"),
      .named_by = surroundings.variable("AWS_WEB_IDENTITY_TOKEN_FILE").empty()
                      ? absl::StrCat("web_identity_token_file of ", profile.Shown())
                      : "AWS_WEB_IDENTITY_TOKEN_FILE"};
  if (identity.token_file.empty()) return std::nullopt;
  if (identity.role_arn.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        identity.named_by, " names a token, but no role; set AWS_ROLE_ARN to the role's ARN"));
  }
  if (identity.session_name.empty()) identity.session_name = "systole";
  return identity;
}

absl::StatusOr<CredentialLease<AwsCredentials>> AssumeRole(
    const WebIdentity& identity, const CredentialSurroundings& surroundings,
    CredentialServers& servers) {
  absl::StatusOr<std::string> token =
      ReadCredentialFile(identity.token_file, "token file", kMaxTokenFileBytes);
  if (absl::IsNotFound(token.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        identity.named_by, " names a file that does not exist: '", ForeignText(identity.token_file),
        "'; correct the path, or mount the token there"));
  }
  SYSTOLE_RETURN_IF_ERROR(token.status());
  absl::StripAsciiWhitespace(&*token);
  if (token->empty()) {
    return absl::FailedPreconditionError(absl::StrCat(identity.named_by, " names an empty file: '",
                                                      ForeignText(identity.token_file), "'"));
  }
  SYSTOLE_ASSIGN_OR_RETURN(std::string url, StsUrl(surroundings));
  const std::string called = absl::StrCat("AWS credentials of ", ShownUrl(url));
  const HttpRequest request = FormRequest(surroundings, std::move(url), called,
                                          {{"Action", "AssumeRoleWithWebIdentity"},
                                           {"Version", "2011-06-15"},
                                           {"RoleArn", identity.role_arn},
                                           {"RoleSessionName", identity.session_name},
                                           {"WebIdentityToken", *token}});
  SYSTOLE_ASSIGN_OR_RETURN(
      const std::string body,
      servers.Ask(request, absl::StrCat("check that the role ", ForeignName(identity.role_arn),
                                        " trusts the issuer of the token of ", identity.named_by,
                                        ", and that the token has not expired")));
  return ParseStsXml(body, called, surroundings.time_of_day());
}

}  // namespace systole
