#include "core/credentials/google_tokens.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/credential_json.h"
#include "core/credentials/credential_life.h"
#include "core/http/http_headers.h"
#include "core/status/status_macros.h"
#include "systole/v1/credentials.pb.h"

namespace systole {
namespace {

constexpr size_t kMaxGoogleTokenBytes = size_t{16} << 10;

}  // namespace

std::string GoogleScope(GoogleAccess access) {
  return absl::StrCat("https://www.googleapis.com/auth/devstorage.",
                      access == GoogleAccess::kRead ? "read_only" : "read_write");
}

absl::StatusOr<CredentialLease<std::string>> ParseGoogleToken(absl::string_view text,
                                                              absl::string_view source) {
  v1::GoogleTokenAnswer answer;
  SYSTOLE_RETURN_IF_ERROR(ParseCredentialJson(text, source, answer));
  const std::string& token = answer.access_token();
  if (token.size() > kMaxGoogleTokenBytes || absl::StrContains(token, ' ') ||
      !IsSendableHeader("authorization", token)) {
    return absl::DataLossError(
        absl::StrCat(source, " has no access token that a header can hold; check the server"));
  }
  if (!answer.has_expires_in()) {
    return absl::DataLossError(
        absl::StrCat(source, " does not say for how many seconds its token is valid"));
  }
  SYSTOLE_ASSIGN_OR_RETURN(const absl::Duration life, LifeOfSeconds(answer.expires_in(), source));
  return CredentialLease<std::string>{.value = token, .life = life};
}

}  // namespace systole
