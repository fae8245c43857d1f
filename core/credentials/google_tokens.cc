#include "core/credentials/google_tokens.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/credential_life.h"
#include "core/credentials/flat_json.h"
#include "core/http/http_headers.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr size_t kMaxGoogleTokenBytes = size_t{16} << 10;

}  // namespace

absl::StatusOr<CredentialLease<std::string>> ParseGoogleToken(absl::string_view text,
                                                              absl::string_view source) {
  SYSTOLE_ASSIGN_OR_RETURN(const FlatJson json, FlatJson::Parse(text, source));
  const absl::string_view token = json.Get("access_token");
  if (token.size() > kMaxGoogleTokenBytes || absl::StrContains(token, ' ') ||
      !IsSendableHeader("authorization", token)) {
    return absl::DataLossError(
        absl::StrCat(source, " has no access token that can be sent; check who answers there"));
  }
  SYSTOLE_ASSIGN_OR_RETURN(const absl::Duration life,
                           LifeOfSeconds(json.Get("expires_in"), source));
  return CredentialLease<std::string>{.value = std::string(token), .life = life};
}

}  // namespace systole
