// A file with which Google's tools get access tokens: a service account's key, or a person's login.
#ifndef SYSTOLE_CORE_CREDENTIALS_GOOGLE_KEY_H_
#define SYSTOLE_CORE_CREDENTIALS_GOOGLE_KEY_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/credentials/credential_cache.h"
#include "core/credentials/credential_servers.h"
#include "core/credentials/credential_surroundings.h"
#include "core/credentials/google_tokens.h"

namespace systole {

// Thread-compatible: a value.
struct GoogleKey {
  std::string token_uri;  // An https address, or an address on this machine.
  // Of a service account; empty for a login.
  std::string client_email = {};
  std::string private_key = {};  // PEM.
  std::string private_key_id = {};
  // Of a login.
  std::string client_id = {};
  std::string client_secret = {};
  std::string refresh_token = {};
};

// Parses the text of the file `path`.
//   FailedPrecondition  a type that is not supported, a missing part, or an address without
//                       encryption.
//   DataLoss            the text is not a JSON object, or a field has a wrong type.
//   ResourceExhausted   the text has too many bytes.
absl::StatusOr<GoogleKey> ParseGoogleKey(absl::string_view text, absl::string_view path);

// Gets a token. Errors of GoogleTokenSource::Get().
absl::StatusOr<CredentialLease<std::string>> AskForToken(const GoogleKey& key,
                                                         absl::string_view path,
                                                         GoogleAccess access,
                                                         const CredentialSurroundings& surroundings,
                                                         CredentialServers& servers);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_GOOGLE_KEY_H_
