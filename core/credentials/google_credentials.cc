#include "core/credentials/google_credentials.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/credential_cache.h"
#include "core/credentials/credential_file.h"
#include "core/credentials/credential_json.h"
#include "core/credentials/credential_servers.h"
#include "core/credentials/google_key.h"
#include "core/credentials/google_metadata.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

using GoogleLease = CredentialLease<std::optional<std::string>>;

constexpr char kUnsigned[] = "SYSTOLE_GS_UNSIGNED";
constexpr char kKeyFileVariable[] = "GOOGLE_APPLICATION_CREDENTIALS";

class GoogleSource final : public GoogleTokenSource {
 public:
  GoogleSource(const CredentialSurroundings& surroundings, GoogleAccess access)
      : surroundings_(surroundings),
        access_(access),
        servers_(surroundings_),
        metadata_(surroundings_, servers_),
        cache_(servers_.ForCache(), [this](absl::Duration deadline) { return Renew(deadline); }) {}

  absl::StatusOr<std::optional<std::string>> Get(absl::Duration timeout) override {
    return cache_.Get(timeout);
  }
  void Refused(const std::optional<std::string>& token) override { cache_.Refused(token); }
  void End() override { servers_.End(); }

 private:
  // Goes through all places in the order of Google's tools. Each call begins with the first place,
  // because any place may have changed.
  absl::StatusOr<GoogleLease> Renew(absl::Duration deadline) {
    servers_.SetDeadline(deadline);
    SYSTOLE_ASSIGN_OR_RETURN(const bool goes_unsigned, IsSwitchedOn(surroundings_, kUnsigned));
    if (goes_unsigned) return GoogleLease{.value = std::nullopt};
    std::optional<CredentialLease<std::string>> given;
    const std::string named = surroundings_.variable(kKeyFileVariable);
    if (!named.empty()) {
      SYSTOLE_ASSIGN_OR_RETURN(given, OfFile(named, kKeyFileVariable));
    } else if (!surroundings_.variable("STORAGE_EMULATOR_HOST").empty()) {
      return GoogleLease{.value = std::nullopt};
    }
    if (const std::string login = LoginPath(); !given.has_value() && !login.empty()) {
      SYSTOLE_ASSIGN_OR_RETURN(given, OfFile(login, nullptr));
    }
    if (!given.has_value()) {
      SYSTOLE_ASSIGN_OR_RETURN(given, metadata_.Ask(access_));
    }
    if (!given.has_value()) return GoogleLease{.value = std::nullopt, .look_again = kLookAgain};
    return GoogleLease{.value = std::move(given->value), .life = given->life};
  }

  // The path of the file in which gcloud keeps a person's login; empty if there is no home folder.
  std::string LoginPath() const {
    std::string folder = surroundings_.variable("CLOUDSDK_CONFIG");
    if (folder.empty()) {
      const std::string home = surroundings_.variable("HOME");
      if (home.empty()) return "";
      folder = absl::StrCat(home, "/.config/gcloud");
    }
    return absl::StrCat(folder, "/application_default_credentials.json");
  }

  // A token for the key file at `path`. `variable` is the variable that names the file. `variable`
  // is null for the default file, which need not exist.
  absl::StatusOr<std::optional<CredentialLease<std::string>>> OfFile(const std::string& path,
                                                                     const char* variable) {
    const absl::StatusOr<std::string> text =
        ReadCredentialFile(path, "Google's key file", kMaxJsonBytes);
    if (absl::IsNotFound(text.status())) {
      if (variable == nullptr) return std::nullopt;
      return absl::FailedPreconditionError(
          absl::StrCat(variable, " names a file that does not exist: '", ForeignText(path),
                       "'; correct it or unset "
                       "it"));
    }
    if (absl::IsPermissionDenied(text.status())) {
      return absl::PermissionDeniedError(
          absl::StrCat(text.status().message(), "; let this user read it, or set ",
                       kKeyFileVariable, " to another, or SYSTOLE_GS_UNSIGNED=1"));
    }
    SYSTOLE_RETURN_IF_ERROR(text.status());
    SYSTOLE_ASSIGN_OR_RETURN(const GoogleKey key, ParseGoogleKey(*text, path));
    SYSTOLE_ASSIGN_OR_RETURN(CredentialLease<std::string> lease,
                             AskForToken(key, path, access_, surroundings_, servers_));
    return lease;
  }

  const CredentialSurroundings surroundings_;
  const GoogleAccess access_;
  CredentialServers servers_;
  GoogleMetadata metadata_;  // Used by Renew() alone, in one thread at a time.
  CredentialCache<std::optional<std::string>> cache_;
};

}  // namespace

absl::StatusOr<std::optional<AwsCredentials>> GoogleHmacKeysOfEnvironment(
    const CredentialSurroundings& surroundings) {
  SYSTOLE_ASSIGN_OR_RETURN(const bool goes_unsigned, IsSwitchedOn(surroundings, kUnsigned));
  if (goes_unsigned) return std::nullopt;
  return KeysOfPlace({.access_key_id = surroundings.variable("GS_ACCESS_KEY_ID"),
                      .secret_access_key = surroundings.variable("GS_SECRET_ACCESS_KEY")},
                     "the environment", "GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY");
}

std::unique_ptr<GoogleTokenSource> GoogleTokensOfEnvironment(
    const CredentialSurroundings& surroundings, GoogleAccess access) {
  return std::make_unique<GoogleSource>(surroundings, access);
}

}  // namespace systole
