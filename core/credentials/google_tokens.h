// Access tokens as Google's services send them, checked.
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
  kRead,   // To read buckets, and no more.
  kWrite,  // To read and to write objects of buckets.
};

// The scope of tokens.
std::string GoogleScope(GoogleAccess access);

// Reads the token from `text`, the answer of a server. Messages name the answer as `source`.
//   DataLoss           there is no token, or no time for which it is valid.
//   Unavailable        the token has ended already.
//   ResourceExhausted  `text` has too many bytes.
absl::StatusOr<CredentialLease<std::string>> ParseGoogleToken(absl::string_view text,
                                                              absl::string_view source);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_GOOGLE_TOKENS_H_
