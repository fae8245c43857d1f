#include "core/credentials/aws_instance.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/credentials/aws_keys.h"
#include "core/http/http_headers.h"
#include "core/http/http_url.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr char kInstance[] = "AWS credentials of this EC2 instance";
constexpr char kInstanceRemedy[] =
    "check the instance's role, or set AWS_EC2_METADATA_DISABLED=true if it should have none";

// The address of the metadata service, without a '/' at the end.
absl::StatusOr<std::string> InstanceServer(const CredentialSurroundings& surroundings,
                                           const char* variable) {
  const std::string named = surroundings.variable(variable);
  if (named.empty()) {
    const bool ipv6 = absl::EqualsIgnoreCase(
        surroundings.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"), "IPv6");
    return ipv6 ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
  }
  const absl::StatusOr<HttpUrl> url = ParseHttpUrl(named);
  if (!url.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(variable, " is not a web address; want http://HOST:PORT"));
  }
  return std::string(absl::StripSuffix(url->Text(), "/"));
}

bool IsRole(absl::string_view name) {
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("+=,.@-_", c);
  });
}

}  // namespace

absl::StatusOr<std::optional<CredentialLease<AwsCredentials>>> AwsInstance::Ask() {
  return looks_.Ask(/*must_be_there=*/false, [this] { return AskOnce(); });
}

absl::StatusOr<std::optional<CredentialLease<AwsCredentials>>> AwsInstance::AskOnce() {
  if (absl::EqualsIgnoreCase(surroundings_.variable("AWS_EC2_METADATA_DISABLED"), "true")) {
    return std::nullopt;
  }
  SYSTOLE_ASSIGN_OR_RETURN(const std::string server,
                           InstanceServer(surroundings_, kEndpointVariable));
  HttpRequest request =
      LinkRequest(surroundings_, absl::StrCat(server, "/latest/api/token"), kInstance);
  request.method = HttpMethod::kPut;
  request.headers = {{"x-aws-ec2-metadata-token-ttl-seconds", "60"}};
  const absl::StatusOr<HttpResponse> token = servers_.Fetch(request);
  if (absl::IsDeadlineExceeded(token.status())) {
    // A container gets this error if it is one hop further away than the service's answers may go.
    return absl::DeadlineExceededError(
        absl::StrCat(token.status().message(),
                     "; in a container, let the instance's metadata take two hops "
                     "(HttpPutResponseHopLimit), or set AWS_EC2_METADATA_DISABLED=true"));
  }
  SYSTOLE_RETURN_IF_ERROR(token.status());
  if (token->status >= 300) {
    const absl::Status refusal =
        CredentialServers::Refusal(request, token->status, kInstanceRemedy);
    // The metadata is switched off, or the service belongs to another cloud.
    if (absl::IsPermissionDenied(refusal) && !looks_.has_given()) return std::nullopt;
    return refusal;
  }
  if (!IsSendableHeader("x-aws-ec2-metadata-token", token->body)) {
    return absl::DataLossError(
        absl::StrCat(kInstance,
                     ": the metadata service gave a session token that is empty or has bytes that "
                     "no header may have; ",
                     kInstanceRemedy));
  }

  const HttpHeaders headers = {{"x-aws-ec2-metadata-token", token->body}};
  const std::string folder = absl::StrCat(server, "/latest/meta-data/iam/security-credentials/");
  request = LinkRequest(surroundings_, folder, kInstance);
  request.headers = headers;
  absl::StatusOr<HttpResponse> answer = servers_.Fetch(request);
  if (!answer.ok()) {  // A copy without the mark of IsNoServer(): the service has answered before.
    return absl::Status(answer.status().code(), answer.status().message());
  }
  const HttpResponse roles = *std::move(answer);
  if (roles.status == 404 && !looks_.has_given()) return std::nullopt;  // The instance has no role.
  if (roles.status >= 300)
    return CredentialServers::Refusal(request, roles.status, kInstanceRemedy);
  const absl::string_view role =
      absl::StripAsciiWhitespace(absl::string_view(roles.body).substr(0, roles.body.find('\n')));
  if (!IsRole(role)) {
    return absl::DataLossError(
        absl::StrCat(kInstance, ": the metadata service names no role; ", kInstanceRemedy));
  }
  request = LinkRequest(surroundings_, absl::StrCat(folder, role), kInstance);
  request.headers = headers;
  SYSTOLE_ASSIGN_OR_RETURN(const std::string body, servers_.Ask(request, kInstanceRemedy));
  return ParseAwsJson(body, kInstance, surroundings_.time_of_day());
}

}  // namespace systole
