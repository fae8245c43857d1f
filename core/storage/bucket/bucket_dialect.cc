#include "core/storage/bucket/bucket_dialect.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/http/http_headers.h"
#include "core/http/http_retry.h"
#include "core/status/status_macros.h"
#include "core/storage/bucket/bucket_answer.h"
#include "core/storage/web/web_answer.h"

namespace systole {
namespace {

// If a refusal has one of these codes, a request with new credentials may succeed.
constexpr absl::string_view kCredentialCodes[] = {
    "ExpiredToken",          "ExpiredTokenException", "InvalidToken",
    "TokenRefreshRequired",  "InvalidSecurity",       "InvalidAccessKeyId",
    "SignatureDoesNotMatch", "XAdminUserNotFound"};  // From the server versitygw, with status 404.

// The status of an answer in which a proxy requires a password.
constexpr int kProxyRefuses = 407;

// The path in the server's address, without a '/' at its end.
absl::string_view PathOf(const HttpUrl& server) { return absl::StripSuffix(server.target, "/"); }

}  // namespace

std::string BucketTarget::Url() const {
  return absl::StrCat(name.scheme, "://", name.bucket, query, name.key.empty() ? "" : "/",
                      name.key);
}

absl::StatusOr<BucketTarget> ParseBucketTarget(absl::string_view url) {
  const size_t question = std::min(url.size(), url.find('?'));
  const size_t slash =
      std::min(url.size(), url.find('/', std::min(url.size(), url.find("://") + 3)));
  BucketTarget target;
  if (question < slash) target.query = std::string(url.substr(question, slash - question));
  const size_t bucket_end = std::min(question, slash);
  SYSTOLE_ASSIGN_OR_RETURN(
      target.name, ParseBucketName(absl::StrCat(url.substr(0, bucket_end), url.substr(slash))));
  return target;
}

std::string AddressAtHost(const HttpUrl& server, const BucketTarget& target) {
  HttpUrl url = server;
  url.host = absl::StrCat(target.name.bucket, ".", server.host);
  url.target = absl::StrCat(PathOf(server), "/", EncodedKey(target.name.key), target.query);
  return url.Text();
}

std::string AddressInPath(const HttpUrl& server, const BucketTarget& target) {
  HttpUrl url = server;
  url.target = absl::StrCat(PathOf(server), "/", target.name.bucket);
  if (target.query.empty() || !target.name.key.empty()) {
    absl::StrAppend(&url.target, "/", EncodedKey(target.name.key));
  }
  url.target += target.query;
  return url.Text();
}

absl::StatusOr<HttpUrl> ParseEndpoint(absl::string_view variable, absl::string_view text) {
  absl::StatusOr<HttpUrl> url = ParseHttpUrl(text);
  if (!url.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(variable, ": ", url.status().message()));
  }
  if (absl::StrContains(url->target, '?')) {
    return absl::InvalidArgumentError(
        absl::StrCat(variable, ": \"", ShownUrl(text), "\" has a query; want a server"));
  }
  return url;
}

void SetBucketRules(HttpRequest& request) {
  request.refusal_bytes = kRefusalBytes;
  request.keeps_dots = true;               // "." and ".." may be parts of keys.
  request.redirects = Redirects::kReturn;  // No other server may get the authorization.
}

bool RefusesCredentials(const HttpResponse& response) {
  if (response.status == 401) return true;
  if (response.status != 400 && response.status != 403 && response.status != 404) return false;
  const std::string code = ParseRefusal(response.body).code;
  return std::find(std::begin(kCredentialCodes), std::end(kCredentialCodes), code) !=
         std::end(kCredentialCodes);
}

bool MayNeedOtherCredentials(const HttpResponse& response, bool had_any) {
  if (RefusesCredentials(response)) return true;
  // Some servers answer 400 to an unsigned request if the request should be signed.
  return !had_any && (response.status == 400 || response.status == 403);
}

absl::Status BucketDialect::RefusalOf(absl::string_view called,
                                      const HttpResponse& response) const {
  return RefusalOf(Action::kRead, called, response);
}

absl::Status BucketDialect::WriteRefusalOf(absl::string_view called,
                                           const HttpResponse& response) const {
  return RefusalOf(Action::kWrite, called, response);
}

absl::Status BucketDialect::RefusalOf(Action action, absl::string_view called,
                                      const HttpResponse& response) const {
  const absl::Status error = Explained(action, called, response);
  const bool may_be_for_that =
      response.status >= 400 && response.status < 500 && response.status != kProxyRefuses;
  if (has_credentials() || !looks_for_credentials() || !may_be_for_that) return error;
  // Servers use many statuses and codes to refuse a request because it has no signature. So this
  // text is added to every refusal 4xx of a request without credentials, except 407, which comes
  // from a proxy.
  return absl::Status(error.code(),
                      absl::StrCat(error.message(),
                                   "; the request had no credentials, because none were found, or ",
                                   words_.unsigned_variable, " is set (", words_.credentials, ")"));
}

absl::Status BucketDialect::Forbidden(Action action, absl::string_view what) const {
  const bool reads = action == Action::kRead;
  if (!has_credentials()) {
    return absl::PermissionDeniedError(
        absl::StrCat(what, "not everybody may ", reads ? "read" : "write", " it"));
  }
  return absl::PermissionDeniedError(
      absl::StrCat(what, "these credentials may not ",
                   reads ? "read it, or it does not exist and they may not list the bucket"
                         : "write or remove it",
                   "; the permissions are ", reads ? words_.permissions : words_.write_permissions,
                   words_.forbidden_too.empty() ? "" : "; ", words_.forbidden_too));
}

absl::Status BucketDialect::Explained(Action action, absl::string_view called,
                                      const HttpResponse& response) const {
  const BucketRefusal refusal = ParseRefusal(response.body);
  const std::string& code = refusal.code;
  const std::string what = absl::StrCat(called, ": ", words_.service, " answers with status ",
                                        response.status, code.empty() ? "" : " ", code, ": ");
  if (RefusesCredentials(response) && has_credentials()) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, "it does not accept the credentials; check that they are valid (",
                     words_.credentials, ")"));
  }
  if (code == "RequestTimeTooSkewed") {
    return absl::FailedPreconditionError(
        absl::StrCat(what, "this machine's clock is wrong; set it (NTP)"));
  }
  if (!words_.payer.empty() && code == "UserProjectMissing") {
    return absl::FailedPreconditionError(absl::StrCat(
        what, "the requester pays for this bucket; set ", words_.payer, " to a project of yours"));
  }
  if (!words_.payer.empty() && absl::StartsWith(code, "UserProject")) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, "the project that should pay is not accepted; correct or unset ",
                     words_.payer, ", or let these credentials use it"));
  }
  if (code == "InvalidObjectState") {
    return absl::FailedPreconditionError(
        absl::StrCat(what, "the object is archived; restore it first"));
  }
  switch (response.status) {
    case 404:
    case 410:
      if (code == "NoSuchBucket") {
        return absl::NotFoundError(
            absl::StrCat(what, "there is no such bucket; check its name, and the server (",
                         words_.endpoint, ")"));
      }
      if (code == "NoSuchUpload") {
        return absl::NotFoundError(absl::StrCat(
            what,
            "the server does not know the upload any more; somebody has ended it, or a "
            "rule of the bucket for unfinished uploads has removed it"));
      }
      if (!code.empty() && code != "NoSuchKey") {
        return absl::NotFoundError(absl::StrCat(
            what,
            "what the request names does not exist, or the server does not know the caller; check "
            "how the key is spelled, and the credentials (",
            words_.credentials, ")"));
      }
      return absl::NotFoundError(
          absl::StrCat(what, "there is no such object; check how its key is spelled"));
    case 401:
    case 403:
      return Forbidden(action, what);
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      return absl::FailedPreconditionError(
          absl::StrCat(what, "the bucket is on another server; set the address of that server (",
                       words_.endpoint, ")"));
    default:
      break;
  }
  if (MayBeTriedAgain(response)) {
    return absl::UnavailableError(
        absl::StrCat(what, "the server is overloaded or fails; try again later, or with fewer ",
                     action == Action::kRead ? "readers" : "writers"));
  }
  if (response.status == kProxyRefuses) return systole::RefusalOf(called, response);
  if (!refusal.region.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(what, "the bucket is in the region ",
                                                      refusal.region, "; set AWS_REGION to it"));
  }
  if (action == Action::kWrite && !code.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, "the server does not accept the object; the code in its answer says why"));
  }
  const absl::string_view want =
      action == Action::kRead ? "want 200 or 206; check that this is a server of buckets ("
                              : "want 200; check that this is a server of buckets, and that it "
                                "takes uploads (";
  return absl::FailedPreconditionError(absl::StrCat(what, want, words_.endpoint, ")"));
}

}  // namespace systole
