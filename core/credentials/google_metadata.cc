#include "core/credentials/google_metadata.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/http/http_headers.h"
#include "core/http/http_url.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr char kMachine[] = "Google's access token of this machine";
constexpr char kMachineRemedy[] =
    "check the service account of the machine or pod, or set NO_GCE_CHECK=true if it should have "
    "none";

}  // namespace

absl::StatusOr<std::optional<CredentialLease<std::string>>> GoogleMetadata::Ask(
    GoogleAccess access) {
  const bool is_named = !surroundings_.variable(kHostVariable).empty();
  return looks_.Ask(/*must_be_there=*/is_named, [this, access] { return AskOnce(access); });
}

absl::StatusOr<std::optional<CredentialLease<std::string>>> GoogleMetadata::AskOnce(
    GoogleAccess access) {
  if (absl::EqualsIgnoreCase(surroundings_.variable("NO_GCE_CHECK"), "true")) return std::nullopt;
  const std::string named = surroundings_.variable(kHostVariable);
  const absl::StatusOr<HttpUrl> server = ParseHttpUrl(
      absl::StrCat("http://", named.empty() ? surroundings_.google_metadata_host : named));
  if (!server.ok() || server->target != "/") {
    return absl::FailedPreconditionError("GCE_METADATA_HOST is not a host; want NAME or NAME:PORT");
  }
  const bool must_be_there = looks_.has_given() || !named.empty();
  HttpRequest request = LinkRequest(
      surroundings_,
      absl::StrCat(server->Origin(),
                   "/computeMetadata/v1/instance/service-accounts/default/token?scopes=",
                   GoogleScope(access)),
      kMachine);
  request.headers = {{"metadata-flavor", "Google"}};
  const absl::StatusOr<HttpResponse> response = servers_.Fetch(request);
  if (absl::IsDeadlineExceeded(response.status())) {
    return absl::DeadlineExceededError(
        absl::StrCat(response.status().message(), "; ", kMachineRemedy));
  }
  SYSTOLE_RETURN_IF_ERROR(response.status());
  // In another network, a server of another kind may have the same host name.
  if (!absl::EqualsIgnoreCase(FindHeader(response->headers, "metadata-flavor"), "Google")) {
    if (!must_be_there) return std::nullopt;
    return absl::FailedPreconditionError(absl::StrCat(
        kMachine, ": the server is not Google's metadata server (status ", response->status, "); ",
        named.empty()
            ? "earlier tokens came from Google's server; check the network and its name servers"
            : "correct or unset GCE_METADATA_HOST"));
  }
  if (response->status == 404 && !looks_.has_given()) return std::nullopt;  // No service account.
  if (response->status >= 300) {
    return CredentialServers::Refusal(request, response->status, kMachineRemedy);
  }
  return ParseGoogleToken(response->body, kMachine);
}

}  // namespace systole
