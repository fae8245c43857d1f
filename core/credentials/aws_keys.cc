#include "core/credentials/aws_keys.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/credential_json.h"
#include "core/credentials/credential_life.h"
#include "core/status/status_macros.h"
#include "systole/v1/credentials.pb.h"

namespace systole {
namespace {

// Long tokens have some 4 KiB.
constexpr size_t kMaxPartBytes = size_t{16} << 10;

bool IsPart(absl::string_view text) {
  return text.size() <= kMaxPartBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isgraph(c); });
}

// On servers of other makers, people can choose their secret key, so a secret key may have blanks.
bool IsSecret(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxPartBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isprint(c); });
}

absl::StatusOr<CredentialLease<AwsCredentials>> Checked(AwsCredentials keys,
                                                        absl::string_view source) {
  if (const std::string part = MalformedPart(keys); !part.empty()) {
    return absl::DataLossError(absl::StrCat(
        source, " has no ", part, " that can be used; check that the address leads to AWS"));
  }
  return CredentialLease<AwsCredentials>{.value = std::move(keys)};
}

// The text of the first element <NAME> in `xml`; "" if there is none, or if it holds more than
// plain text. Keys, tokens and dates have no character that XML escapes.
absl::string_view TextOfElement(absl::string_view xml, absl::string_view name) {
  const std::string open = absl::StrCat("<", name, ">");
  const size_t begin = xml.find(open);
  if (begin == absl::string_view::npos) return "";
  xml.remove_prefix(begin + open.size());
  const size_t end = xml.find_first_of("<&");
  if (end == absl::string_view::npos ||
      !absl::StartsWith(xml.substr(end), absl::StrCat("</", name, ">"))) {
    return "";
  }
  return absl::StripAsciiWhitespace(xml.substr(0, end));
}

}  // namespace

std::string MalformedPart(const AwsCredentials& keys) {
  if (keys.access_key_id.empty() || !IsPart(keys.access_key_id) ||
      absl::StrContains(keys.access_key_id, ',')) {
    return "access key ID";
  }
  if (!IsSecret(keys.secret_access_key)) return "secret access key";
  return IsPart(keys.session_token) ? "" : "session token";
}

absl::StatusOr<std::optional<AwsCredentials>> KeysOfPlace(AwsCredentials keys,
                                                          absl::string_view place,
                                                          absl::string_view id_name,
                                                          absl::string_view secret_name) {
  if (keys.access_key_id.empty() && keys.secret_access_key.empty()) return std::nullopt;
  if (keys.access_key_id.empty() || keys.secret_access_key.empty()) {
    const bool has_id = !keys.access_key_id.empty();
    return absl::FailedPreconditionError(
        absl::StrCat(place, " has ", has_id ? id_name : secret_name, ", but no ",
                     has_id ? secret_name : id_name, "; give both or neither"));
  }
  if (const std::string part = MalformedPart(keys); !part.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        place, " has a malformed ", part,
        ", which must be printable ASCII on one line; check that it was copied correctly"));
  }
  return keys;
}

absl::StatusOr<CredentialLease<AwsCredentials>> ParseAwsJson(absl::string_view text,
                                                             absl::string_view source,
                                                             absl::Time now) {
  v1::AwsKeyAnswer answer;
  SYSTOLE_RETURN_IF_ERROR(ParseCredentialJson(text, source, answer));
  // "Success", or for example "AssumeRoleUnauthorizedAccess".
  const absl::string_view code = answer.code();
  if (!code.empty() && code != "Success") {
    const bool is_word =
        code.size() <= 64 && std::all_of(code.begin(), code.end(), absl::ascii_isalnum);
    return absl::PermissionDeniedError(absl::StrCat(
        source, " says that it has no keys", is_word ? absl::StrCat(" (", code, ")") : "",
        "; check the role of this machine, and its trust policy"));
  }
  SYSTOLE_ASSIGN_OR_RETURN(CredentialLease<AwsCredentials> lease,
                           Checked({.access_key_id = answer.access_key_id(),
                                    .secret_access_key = answer.secret_access_key(),
                                    .session_token = answer.token()},
                                   source));
  if (answer.expiration().empty()) {
    lease.look_again = absl::Minutes(5);
  } else {
    SYSTOLE_ASSIGN_OR_RETURN(lease.life, LifeUntil(answer.expiration(), now, source));
  }
  return lease;
}

absl::StatusOr<CredentialLease<AwsCredentials>> ParseStsXml(absl::string_view text,
                                                            absl::string_view source,
                                                            absl::Time now) {
  if (text.size() > kMaxJsonBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(source, " has ", text.size(), " bytes, want at most ", kMaxJsonBytes));
  }
  SYSTOLE_ASSIGN_OR_RETURN(
      CredentialLease<AwsCredentials> lease,
      Checked({.access_key_id = std::string(TextOfElement(text, "AccessKeyId")),
               .secret_access_key = std::string(TextOfElement(text, "SecretAccessKey")),
               .session_token = std::string(TextOfElement(text, "SessionToken"))},
              source));
  // Keys of STS always expire. The date comes last, so an answer that was cut has none.
  SYSTOLE_ASSIGN_OR_RETURN(lease.life, LifeUntil(TextOfElement(text, "Expiration"), now, source));
  return lease;
}

}  // namespace systole
