// Reads and checks AWS's keys, which people write into files and variables, and services into
// answers. The HMAC keys of Cloud Storage have the same form.
//
// Thread-safe: no state; AwsCredentials is a value.
#ifndef SYSTOLE_CORE_CREDENTIALS_AWS_KEYS_H_
#define SYSTOLE_CORE_CREDENTIALS_AWS_KEYS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/credentials/credential_cache.h"

namespace systole {

struct AwsCredentials {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token = {};  // Empty: the keys are not temporary.

  bool operator==(const AwsCredentials&) const = default;
};

// The part of `keys` that cannot be used to sign, because it is missing or not printable ASCII:
// "access key ID", .. Empty: all parts can be used.
std::string MalformedPart(const AwsCredentials& keys);

// The keys of one place. `place` names the place in messages, such as "the environment". The other
// arguments are the names that the keys have in this place. Nullopt if the place has neither key.
//   FailedPrecondition   one key without the other, or a malformed part.
absl::StatusOr<std::optional<AwsCredentials>> KeysOfPlace(AwsCredentials keys,
                                                          absl::string_view place,
                                                          absl::string_view id_name,
                                                          absl::string_view secret_name);

// The next functions read an answer at the time `now`. `source` says in messages what was read.
//   DataLoss           a malformed answer, or one that lacks a part.
//   PermissionDenied   the answer says that this role has no credentials.
//   Unavailable        credentials that have ended already.
//   ResourceExhausted  too many bytes.

// Parses the JSON of an EC2 instance or of a container. If the JSON does not say when the
// credentials expire, new credentials are requested after five minutes.
absl::StatusOr<CredentialLease<AwsCredentials>> ParseAwsJson(absl::string_view text,
                                                             absl::string_view source,
                                                             absl::Time now);

// Parses the XML of STS, from AWS or from a service that speaks like it.
absl::StatusOr<CredentialLease<AwsCredentials>> ParseStsXml(absl::string_view text,
                                                            absl::string_view source,
                                                            absl::Time now);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_AWS_KEYS_H_
