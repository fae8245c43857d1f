// Claims that are signed by a private key: JSON Web Tokens with RS256 (RFC 7519).
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_CREDENTIALS_SIGNED_JWT_H_
#define SYSTOLE_CORE_CREDENTIALS_SIGNED_JWT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace systole {

struct JwtClaims {
  std::string issuer;
  std::string scope;
  std::string audience;
  absl::Time begin;
  absl::Time end;
  std::string key_id = {};  // Empty: not named.
};

// The token. InvalidArgument if `private_key_pem` is not an unencrypted RSA key. The message begins
// with a verb, and holds no part of the key.
absl::StatusOr<std::string> SignedJwt(const JwtClaims& claims, absl::string_view private_key_pem);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_SIGNED_JWT_H_
