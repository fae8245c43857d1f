#include "core/credentials/google_key.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/credential_json.h"
#include "core/credentials/signed_jwt.h"
#include "core/http/http_url.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"
#include "systole/v1/credentials.pb.h"

namespace systole {
namespace {

constexpr char kTokenUri[] = "https://oauth2.googleapis.com/token";
constexpr absl::Duration kClaimLife = absl::Hours(1);  // The longest life that Google accepts.

std::string Quoted(absl::string_view path) { return absl::StrCat("'", ForeignText(path), "'"); }

absl::Status Unfit(absl::string_view path, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("Google's key file ", Quoted(path), " ", why));
}

// Messages show only a known type, because the file may have any text there.
std::string ShownType(absl::string_view type) {
  for (const char* known : {"external_account", "external_account_authorized_user",
                            "gdch_service_account", "impersonated_service_account"}) {
    if (type == known) return absl::StrCat("the type ", known);
  }
  return "no known type";
}

}  // namespace

absl::StatusOr<GoogleKey> ParseGoogleKey(absl::string_view text, absl::string_view path) {
  v1::GoogleKeyFile file;
  SYSTOLE_RETURN_IF_ERROR(
      ParseCredentialJson(text, absl::StrCat("Google's key file ", Quoted(path)), file));
  GoogleKey key = {.token_uri = file.token_uri()};
  std::vector<std::pair<const char*, const std::string*>> wanted;
  if (file.type() == "service_account") {
    key.client_email = file.client_email();
    key.private_key = file.private_key();
    key.private_key_id = file.private_key_id();
    wanted = {{"client_email", &key.client_email}, {"private_key", &key.private_key}};
  } else if (file.type() == "authorized_user") {
    key.client_id = file.client_id();
    key.client_secret = file.client_secret();
    key.refresh_token = file.refresh_token();
    wanted = {{"client_id", &key.client_id},
              {"client_secret", &key.client_secret},
              {"refresh_token", &key.refresh_token}};
  } else {
    return Unfit(path, absl::StrCat("is of ", ShownType(file.type()),
                                    "; supported are service_account and authorized_user (`gcloud "
                                    "auth application-default login`), and the metadata server of "
                                    "a machine or a Kubernetes pod"));
  }
  for (const auto& [name, value] : wanted) {
    if (value->empty()) return Unfit(path, absl::StrCat("has no ", name, "; make it anew"));
  }
  if (key.token_uri.empty()) key.token_uri = kTokenUri;
  if (const absl::Status status = CheckSecretAddress(key.token_uri); !status.ok()) {
    return Unfit(path, absl::StrCat("has a token_uri that ", status.message()));
  }
  return key;
}

absl::StatusOr<CredentialLease<std::string>> AskForToken(const GoogleKey& key,
                                                         absl::string_view path,
                                                         GoogleAccess access,
                                                         const CredentialSurroundings& surroundings,
                                                         CredentialServers& servers) {
  std::vector<std::pair<std::string, std::string>> fields;
  std::string remedy;
  if (!key.private_key.empty()) {
    const absl::Time now = surroundings.time_of_day();
    absl::StatusOr<std::string> jwt = SignedJwt({.issuer = key.client_email,
                                                 .scope = GoogleScope(access),
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
    // The request names no scope: the login has its own scopes, and Google refuses others.
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
