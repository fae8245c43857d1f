// Reads and checks the access tokens that Google's services send.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_CREDENTIALS_GOOGLE_TOKENS_H_
#define SYSTOLE_CORE_CREDENTIALS_GOOGLE_TOKENS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/credentials/credential_cache.h"

namespace systole {

// What a token may be used for.
enum class GoogleAccess {
  kRead,   // Only to read buckets.
  kWrite,  // To read and to write objects of buckets.
};

// The scope to request for a token.
std::string GoogleScope(GoogleAccess access);

// Reads the token from `text`, the answer of a server. Messages name the answer as `source`.
//   DataLoss           the answer has no token, or does not say how long the token is valid.
//   Unavailable        the token has ended already.
//   ResourceExhausted  `text` has too many bytes.
absl::StatusOr<CredentialLease<std::string>> ParseGoogleToken(absl::string_view text,
                                                              absl::string_view source);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_GOOGLE_TOKENS_H_
