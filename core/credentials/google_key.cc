#include "core/credentials/google_key.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/flat_json.h"
#include "core/credentials/google_tokens.h"
#include "core/credentials/signed_jwt.h"
#include "core/http/http_url.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

constexpr char kTokenUri[] = "https://oauth2.googleapis.com/token";
constexpr absl::Duration kClaimLife = absl::Hours(1);  // The most that Google takes.

std::string Quoted(absl::string_view path) { return absl::StrCat("'", ForeignText(path), "'"); }

absl::Status Unfit(absl::string_view path, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("Google's key file ", Quoted(path), " ", why));
}

}  // namespace

absl::StatusOr<GoogleKey> ParseGoogleKey(absl::string_view text, absl::string_view path) {
  SYSTOLE_ASSIGN_OR_RETURN(const FlatJson json,
                           FlatJson::Parse(text, absl::StrCat("Google's key file ", Quoted(path))));
  const auto get = [&json](absl::string_view name) { return std::string(json.Get(name)); };
  const std::string type = get("type");
  GoogleKey key = {.token_uri = get("token_uri")};
  std::vector<const char*> wanted;
  if (type == "service_account") {
    key.client_email = get("client_email");
    key.private_key = get("private_key");
    key.private_key_id = get("private_key_id");
    wanted = {"client_email", "private_key"};
  } else if (type == "authorized_user") {
    key.client_id = get("client_id");
    key.client_secret = get("client_secret");
    key.refresh_token = get("refresh_token");
    wanted = {"client_id", "client_secret", "refresh_token"};
  } else {
    const bool is_known = type == "external_account" || type == "impersonated_service_account" ||
                          type == "external_account_authorized_user" ||
                          type == "gdch_service_account";
    return Unfit(
        path,
        absl::StrCat("is ", is_known ? absl::StrCat("of the type ", type) : "of no known type",
                     "; supported are service_account and authorized_user (`gcloud "
                     "auth application-default login`), and the metadata server of "
                     "a machine or a Kubernetes pod"));
  }
  for (const char* name : wanted) {
    if (json.Get(name).empty()) {
      return Unfit(path, absl::StrCat("has no ", name, "; make it anew"));
    }
  }
  if (key.token_uri.empty()) key.token_uri = kTokenUri;
  if (const absl::Status status = CheckSecretAddress(key.token_uri); !status.ok()) {
    return Unfit(path, absl::StrCat("has a token_uri that ", status.message()));
  }
  return key;
}

absl::StatusOr<CredentialLease<std::string>> AskForToken(const GoogleKey& key,
                                                         absl::string_view path,
                                                         const CredentialSurroundings& surroundings,
                                                         CredentialServers& servers) {
  std::vector<std::pair<std::string, std::string>> fields;
  std::string remedy;
  if (!key.private_key.empty()) {
    const absl::Time now = surroundings.time_of_day();
    absl::StatusOr<std::string> jwt = SignedJwt({.issuer = key.client_email,
                                                 .scope = kGoogleScope,
                                                 .audience = key.token_uri,
                                                 .begin = now,
                                                 .end = now + kClaimLife,
                                                 .key_id = key.private_key_id},
                                                key.private_key);
    if (!jwt.ok()) return Unfit(path, jwt.status().message());
    fields = {{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"},
              {"assertion", *std::move(jwt)}};
    remedy = absl::StrCat("check that the key of ", Quoted(path),
                          " still exists, and this machine's clock");
  } else {
    // No scope is named: the login has its own, and Google refuses others.
    fields = {{"grant_type", "refresh_token"},
              {"client_id", key.client_id},
              {"client_secret", key.client_secret},
              {"refresh_token", key.refresh_token}};
    remedy = absl::StrCat("the login of ", Quoted(path),
                          " may have ended: run `gcloud auth application-default login`");
  }
  const std::string called = absl::StrCat("Google's access token of ", ShownUrl(key.token_uri));
  SYSTOLE_ASSIGN_OR_RETURN(
      const std::string body,
      servers.Ask(FormRequest(surroundings, key.token_uri, called, fields), remedy));
  return ParseGoogleToken(body, called);
}

}  // namespace systole
