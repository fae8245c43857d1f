// Reads and checks AWS's keys. People write keys into files and variables, and services send keys
// in answers. The HMAC keys of Cloud Storage have the same form.
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

// The name of the first part of `keys` that cannot be used to sign, such as "access key ID". Empty:
// all parts can be used. Only the session token may be missing. A part must be printable ASCII, at
// most 16 KiB. Only the secret access key may have blanks. The access key ID may have no comma.
std::string MalformedPart(const AwsCredentials& keys);

// Checks the keys that were found in one place, and returns them. Nullopt if `keys` has neither
// key. `place` names the place in messages, such as "the environment". `id_name` and `secret_name`
// are the names of the two keys in this place.
//   FailedPrecondition   one key without the other, or a malformed part.
absl::StatusOr<std::optional<AwsCredentials>> KeysOfPlace(AwsCredentials keys,
                                                          absl::string_view place,
                                                          absl::string_view id_name,
                                                          absl::string_view secret_name);

// The next two functions parse an answer that came at the time `now`. `source` names the answer in
// messages.
//   DataLoss           the answer is malformed, or lacks a part.
//   PermissionDenied   the answer says that this role has no credentials.
//   Unavailable        the credentials in the answer have expired already.
//   ResourceExhausted  the answer is too large.

// Parses the JSON of an EC2 instance's or a container's credential server. If the JSON does not say
// when the credentials expire, `look_again` of the lease is five minutes.
absl::StatusOr<CredentialLease<AwsCredentials>> ParseAwsJson(absl::string_view text,
                                                             absl::string_view source,
                                                             absl::Time now);

// Parses the XML of STS (AWS's Security Token Service), or of a service with the same protocol.
absl::StatusOr<CredentialLease<AwsCredentials>> ParseStsXml(absl::string_view text,
                                                            absl::string_view source,
                                                            absl::Time now);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_AWS_KEYS_H_
