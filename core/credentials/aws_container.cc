#include "core/credentials/aws_container.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/aws_keys.h"
#include "core/credentials/credential_file.h"
#include "core/http/http_headers.h"
#include "core/http/http_url.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"
#include "core/text/loopback_host.h"

namespace systole {
namespace {

constexpr char kRelative[] = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
constexpr char kFull[] = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
constexpr char kTokenFile[] = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
constexpr char kToken[] = "AWS_CONTAINER_AUTHORIZATION_TOKEN";

// Whether the request may go to `url`. The servers of ECS and EKS need no TLS, because packets to
// their addresses do not leave this machine's network link.
bool MayBeAsked(const HttpUrl& url) {
  return url.scheme == "https" || IsLoopbackHost(url.host) || url.host == "169.254.170.2" ||
         url.host == "169.254.170.23" || url.host == "[fd00:ec2::23]";
}

// The authorization to send; empty if none is set.
absl::StatusOr<std::string> Authorization(const CredentialSurroundings& surroundings) {
  std::string token = surroundings.variable(kToken);
  const char* named_by = kToken;
  if (const std::string path = surroundings.variable(kTokenFile); !path.empty()) {
    named_by = kTokenFile;
    absl::StatusOr<std::string> read = ReadCredentialFile(path, "token file", kMaxTokenFileBytes);
    if (absl::IsNotFound(read.status())) {
      return absl::FailedPreconditionError(
          absl::StrCat(kTokenFile, " names a file that does not exist: '", ForeignText(path), "'"));
    }
    SYSTOLE_RETURN_IF_ERROR(read.status());
    token = *std::move(read);
    absl::StripTrailingAsciiWhitespace(&token);
    if (token.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat(kTokenFile, " names an empty file: '", ForeignText(path), "'"));
    }
  }
  if (!token.empty() && !IsSendableHeader("authorization", token)) {
    return absl::FailedPreconditionError(
        absl::StrCat(named_by, " has a character that cannot be sent; want printable ASCII"));
  }
  return token;
}

}  // namespace

absl::StatusOr<std::optional<CredentialLease<AwsCredentials>>> AskContainer(
    const CredentialSurroundings& surroundings, CredentialServers& servers) {
  const std::string relative = surroundings.variable(kRelative);
  std::string address = surroundings.variable(kFull);
  const char* const named_by = relative.empty() ? kFull : kRelative;
  if (!relative.empty()) {
    if (!absl::StartsWith(relative, "/")) {
      return absl::FailedPreconditionError(
          absl::StrCat(kRelative, " does not begin with '/'; want a path"));
    }
    address = absl::StrCat(surroundings.container_server, relative);
  }
  if (address.empty()) return std::nullopt;
  const absl::StatusOr<HttpUrl> url = ParseHttpUrl(address);
  if (!url.ok() || !MayBeAsked(*url)) {
    return absl::FailedPreconditionError(absl::StrCat(
        named_by,
        url.ok() ? " leads to another machine without encryption" : " is not a web address",
        "; want https, or http on this machine, 169.254.170.2, 169.254.170.23 or [fd00:ec2::23]"));
  }
  // The path may be known to this container alone, so messages do not show it.
  const std::string called = absl::StrCat("AWS credentials of ", named_by);
  HttpRequest request = LinkRequest(surroundings, url->Text(), called);
  SYSTOLE_ASSIGN_OR_RETURN(std::string authorization, Authorization(surroundings));
  if (!authorization.empty()) {
    request.headers.emplace_back("authorization", std::move(authorization));
  }
  SYSTOLE_ASSIGN_OR_RETURN(
      const std::string body,
      servers.Ask(request, absl::StrCat("check the role of the task or pod, and ", kTokenFile)));
  return ParseAwsJson(body, called, surroundings.time_of_day());
}

}  // namespace systole
