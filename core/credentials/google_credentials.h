// The access tokens that this process has for Google Cloud Storage, from the places where Google's
// own tools look ("application default credentials").
#ifndef SYSTOLE_CORE_CREDENTIALS_GOOGLE_CREDENTIALS_H_
#define SYSTOLE_CORE_CREDENTIALS_GOOGLE_CREDENTIALS_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/credentials/aws_keys.h"
#include "core/credentials/credential_surroundings.h"
#include "core/credentials/google_tokens.h"

namespace systole {

// Thread-safe.
class GoogleTokenSource {
 public:
  virtual ~GoogleTokenSource() = default;

  // The token for "authorization: Bearer ..". It is renewed first if it expires soon. It is
  // printable ASCII without blanks. Nullopt: this process has no token anywhere. Errors and
  // messages as AwsCredentialSource::Get().
  virtual absl::StatusOr<std::optional<std::string>> Get(absl::Duration timeout) = 0;

  // As AwsCredentialSource::Refused() and End().
  virtual void Refused(const std::optional<std::string>& token) = 0;
  virtual void End() = 0;
};

// The HMAC keys that the environment has for Cloud Storage. They never expire. If there are such
// keys, they sign the requests, and no token is used. Nullopt: there are none, or
// SYSTOLE_GS_UNSIGNED is 1.
//   FailedPrecondition   one key without the other, or a malformed variable.
absl::StatusOr<std::optional<AwsCredentials>> GoogleHmacKeysOfEnvironment(
    const CredentialSurroundings& surroundings = {});

// A source that looks in the usual places. Reads nothing until the first Get(). The README has the
// variables.
std::unique_ptr<GoogleTokenSource> GoogleTokensOfEnvironment(
    const CredentialSurroundings& surroundings = {}, GoogleAccess access = GoogleAccess::kRead);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_GOOGLE_CREDENTIALS_H_
