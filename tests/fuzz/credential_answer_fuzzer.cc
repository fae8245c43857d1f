// Reads any bytes as each kind of answer of a service of credentials, and as a key file. Accepted
// keys and tokens of a service can stand in a header, and their lifetime is positive.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "core/credentials/aws_keys.h"
#include "core/credentials/google_key.h"
#include "core/credentials/google_tokens.h"
#include "core/http/http_headers.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

namespace {

void Check(const absl::StatusOr<systole::CredentialLease<systole::AwsCredentials>>& lease) {
  if (!lease.ok()) {
    SYSTOLE_CHECK(absl::StartsWith(lease.status().message(), "source "));
    SYSTOLE_CHECK(lease.status().message().size() < 300);
    return;
  }
  SYSTOLE_CHECK(systole::MalformedPart(lease->value).empty());
  SYSTOLE_CHECK(systole::IsSendableHeader("a", lease->value.access_key_id));
  SYSTOLE_CHECK(lease->life > absl::ZeroDuration());
}

}  // namespace

SYSTOLE_FUZZER(credential_answer, const uint8_t* data, size_t size) {
  using namespace systole;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  Check(ParseAwsJson(text, "source", now));
  Check(ParseStsXml(text, "source", now));
  if (const auto token = ParseGoogleToken(text, "source"); token.ok()) {
    SYSTOLE_CHECK(IsSendableHeader("authorization", token->value));
    SYSTOLE_CHECK(token->life > absl::ZeroDuration());
  }
  if (const auto key = ParseGoogleKey(text, "source"); key.ok()) {
    SYSTOLE_CHECK(CheckSecretAddress(key->token_uri).ok());
    SYSTOLE_CHECK(!key->private_key.empty() || !key->refresh_token.empty());
  } else {
    SYSTOLE_CHECK(key.status().message().size() < 500);
  }
  return 0;
}
