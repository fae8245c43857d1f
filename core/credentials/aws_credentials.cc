#include "core/credentials/aws_credentials.h"

#include <initializer_list>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/aws_container.h"
#include "core/credentials/aws_instance.h"
#include "core/credentials/aws_keys.h"
#include "core/credentials/aws_profile.h"
#include "core/credentials/aws_web_identity.h"
#include "core/credentials/credential_cache.h"
#include "core/credentials/credential_servers.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

using AwsLease = CredentialLease<std::optional<AwsCredentials>>;

absl::StatusOr<std::optional<AwsCredentials>> KeysOfEnvironment(
    const CredentialSurroundings& surroundings) {
  return KeysOfPlace({.access_key_id = surroundings.variable("AWS_ACCESS_KEY_ID"),
                      .secret_access_key = surroundings.variable("AWS_SECRET_ACCESS_KEY"),
                      .session_token = surroundings.variable("AWS_SESSION_TOKEN")},
                     "the environment", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY");
}

absl::Status Unsupported(const AwsProfile& profile, absl::string_view key) {
  return absl::FailedPreconditionError(absl::StrCat(
      profile.Shown(), " has '", key,
      "', which is not supported here; give keys by AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and "
      "AWS_SESSION_TOKEN (`aws configure export-credentials --format env` prints them), or a "
      "web_identity_token_file"));
}

// The first of `keys` that the profile has; null if it has none.
const char* FirstSetting(const AwsProfile& profile, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (!profile.Get(key).empty()) return key;
  }
  return nullptr;
}

class AwsSource final : public AwsCredentialSource {
 public:
  explicit AwsSource(const CredentialSurroundings& surroundings)
      : surroundings_(surroundings),
        servers_(surroundings_, "AWS_CA_BUNDLE"),
        instance_(surroundings_, servers_),
        cache_(servers_.ForCache(), [this](absl::Duration deadline) { return Renew(deadline); }) {}

  absl::StatusOr<std::optional<AwsCredentials>> Get(absl::Duration timeout) override {
    return cache_.Get(timeout);
  }
  void Refused(const std::optional<AwsCredentials>& used) override { cache_.Refused(used); }
  void End() override { servers_.End(); }

 private:
  static AwsLease Optional(CredentialLease<AwsCredentials> lease) {
    return {.value = std::move(lease.value), .life = lease.life, .look_again = lease.look_again};
  }

  // Goes through all places in the order of AWS's tools. Each call begins with the first place,
  // because any place may have changed.
  absl::StatusOr<AwsLease> Renew(absl::Duration deadline) {
    servers_.SetDeadline(deadline);
    SYSTOLE_ASSIGN_OR_RETURN(const bool goes_unsigned,
                             IsSwitchedOn(surroundings_, "SYSTOLE_S3_UNSIGNED"));
    if (goes_unsigned) return AwsLease{.value = std::nullopt};
    SYSTOLE_ASSIGN_OR_RETURN(std::optional<AwsCredentials> keys, KeysOfEnvironment(surroundings_));
    if (keys.has_value()) return AwsLease{.value = std::move(keys)};
    SYSTOLE_ASSIGN_OR_RETURN(const AwsProfile profile, ReadAwsProfile(surroundings_));
    SYSTOLE_ASSIGN_OR_RETURN(std::optional<AwsLease> lease, OfProfile(profile));
    if (lease.has_value()) return *std::move(lease);
    SYSTOLE_ASSIGN_OR_RETURN(std::optional<CredentialLease<AwsCredentials>> given,
                             AskContainer(surroundings_, servers_));
    if (!given.has_value()) {
      SYSTOLE_ASSIGN_OR_RETURN(given, instance_.Ask());
    }
    if (given.has_value()) return Optional(*std::move(given));
    return AwsLease{.value = std::nullopt, .look_again = kLookAgain};
  }

  // The credentials for the web identity that the environment or the profile names. If no web
  // identity is named, returns the profile's keys.
  absl::StatusOr<std::optional<AwsLease>> OfProfile(const AwsProfile& profile) {
    if (!profile.Get("role_arn").empty()) {
      const char* const key = FirstSetting(profile, {"source_profile", "credential_source"});
      if (key != nullptr) return Unsupported(profile, key);
    }
    SYSTOLE_ASSIGN_OR_RETURN(const std::optional<WebIdentity> identity,
                             FindWebIdentity(surroundings_, profile));
    if (identity.has_value()) {
      SYSTOLE_ASSIGN_OR_RETURN(CredentialLease<AwsCredentials> lease,
                               AssumeRole(*identity, surroundings_, servers_));
      return Optional(std::move(lease));
    }
    const char* const sso = FirstSetting(profile, {"sso_session", "sso_start_url"});
    if (sso != nullptr) return Unsupported(profile, sso);
    SYSTOLE_ASSIGN_OR_RETURN(
        std::optional<AwsCredentials> keys,
        KeysOfPlace({.access_key_id = profile.Get("aws_access_key_id"),
                     .secret_access_key = profile.Get("aws_secret_access_key"),
                     .session_token = profile.Get("aws_session_token")},
                    profile.Shown(), "aws_access_key_id", "aws_secret_access_key"));
    if (keys.has_value()) return AwsLease{.value = std::move(keys), .look_again = kLookAgain};
    if (!profile.Get("aws_session_token").empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat(profile.Shown(),
                       " has aws_session_token, but no keys beside it; put all three into one "
                       "file, or remove the token"));
    }
    const char* const other = FirstSetting(profile, {"credential_process", "login_session"});
    if (other != nullptr) return Unsupported(profile, other);
    return std::nullopt;
  }

  const CredentialSurroundings surroundings_;
  CredentialServers servers_;
  AwsInstance instance_;  // Used by Renew() alone, in one thread at a time.
  CredentialCache<std::optional<AwsCredentials>> cache_;
};

}  // namespace

std::unique_ptr<AwsCredentialSource> AwsCredentialsOfEnvironment(
    const CredentialSurroundings& surroundings) {
  return std::make_unique<AwsSource>(surroundings);
}

}  // namespace systole
