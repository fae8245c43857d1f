#include "tests/core/http/sigv4_verifier.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/http/http_headers.h"
#include "openssl/evp.h"
#include "openssl/hmac.h"
#include "openssl/sha.h"

namespace systole {
namespace {

std::string Sha256Hex(absl::string_view bytes) {
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), hash);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(hash), sizeof(hash)));
}

std::string Hmac(absl::string_view key, absl::string_view text) {
  unsigned char hash[SHA256_DIGEST_LENGTH];
  unsigned size = sizeof(hash);
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash, &size);
  return std::string(reinterpret_cast<const char*>(hash), size);
}

// Percent-encodes all but unreserved characters, and '/' if it may stay.
std::string Encode(absl::string_view text, bool keeps_slash) {
  std::string encoded;
  for (const char c : text) {
    if (absl::ascii_isalnum(c) || absl::StrContains("-._~", c) || (c == '/' && keeps_slash)) {
      encoded += c;
    } else {
      absl::StrAppend(&encoded, "%",
                      absl::AsciiStrToUpper(absl::BytesToHexString(absl::string_view(&c, 1))));
    }
  }
  return encoded;
}

std::string CanonicalQuery(absl::string_view query) {
  std::vector<std::pair<std::string, std::string>> parameters;
  for (const absl::string_view each : absl::StrSplit(query, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(each, absl::MaxSplits('=', 1));
    parameters.emplace_back(Encode(WithoutEscapes(parts.first), false),
                            Encode(WithoutEscapes(parts.second), false));
  }
  std::sort(parameters.begin(), parameters.end());
  return absl::StrJoin(parameters, "&", absl::PairFormatter("="));
}

// The value of a field of the header Authorization: "Credential=.., SignedHeaders=..,
// Signature=..".
std::string Field(absl::string_view authorization, absl::string_view name) {
  for (absl::string_view field : absl::StrSplit(authorization, absl::ByAnyChar(", "))) {
    if (absl::ConsumePrefix(&field, absl::StrCat(name, "="))) return std::string(field);
  }
  return "";
}

// All values of a header, as they are signed. Nullopt if the request has no such header.
std::optional<std::string> SignedValue(const StubRequest& request, absl::string_view name) {
  std::vector<std::string> values;
  for (const auto& [each, value] : request.headers) {
    if (each != name) continue;
    std::string trimmed = value;
    absl::RemoveExtraAsciiWhitespace(&trimmed);
    values.push_back(std::move(trimmed));
  }
  if (values.empty()) return std::nullopt;
  return absl::StrJoin(values, ",");
}

bool MustBeSigned(absl::string_view header) {
  return header == "host" || header == "range" || header == "if-match" ||
         absl::StartsWith(header, "x-amz-") || absl::StartsWith(header, "x-goog-");
}

absl::Status Refused(absl::string_view why) {
  return absl::PermissionDeniedError(absl::StrCat("signature refused: ", why));
}

}  // namespace

absl::Status VerifySigV4(const StubRequest& request, const AwsSigning& expected) {
  absl::string_view authorization = FindHeader(request.headers, "authorization");
  if (authorization.empty()) return Refused("the request is not signed");
  const bool is_google = expected.scheme == SigningScheme::kGoogle;
  const std::string algorithm = is_google ? "GOOG4-HMAC-SHA256" : "AWS4-HMAC-SHA256";
  const std::string request_type = is_google ? "goog4_request" : "aws4_request";
  const std::string header_prefix = is_google ? "x-goog-" : "x-amz-";
  const std::string other_prefix = is_google ? "x-amz-" : "x-goog-";
  if (!absl::ConsumePrefix(&authorization, absl::StrCat(algorithm, " "))) {
    return Refused("other algorithm");
  }
  for (const auto& [name, value] : request.headers) {
    if (absl::StartsWith(name, other_prefix)) return Refused("headers of both kinds");
  }

  const std::string time(FindHeader(request.headers, absl::StrCat(header_prefix, "date")));
  if (time.size() != 16 || time[8] != 'T' || time.back() != 'Z') return Refused("no date");
  const std::string date = time.substr(0, 8);
  const std::string scope =
      absl::StrCat(date, "/", expected.region, "/", expected.service, "/", request_type);
  const std::string credential = Field(authorization, "Credential");
  if (credential != absl::StrCat(expected.access_key_id, "/", scope)) {
    return Refused(absl::StrCat("the credential is ", credential));
  }
  if (FindHeader(request.headers, "x-amz-security-token") != expected.session_token) {
    return Refused("other session token");
  }

  const std::string signed_headers = Field(authorization, "SignedHeaders");
  const std::vector<std::string> names = absl::StrSplit(signed_headers, ';');
  if (!std::is_sorted(names.begin(), names.end())) return Refused("headers are not sorted");
  for (const auto& [name, value] : request.headers) {
    if (MustBeSigned(name) && std::find(names.begin(), names.end(), name) == names.end()) {
      return Refused(absl::StrCat(name, " is not signed"));
    }
  }
  std::string headers;
  for (const std::string& name : names) {
    const std::optional<std::string> value = SignedValue(request, name);
    if (!value.has_value()) return Refused(absl::StrCat(name, " is signed and missing"));
    absl::StrAppend(&headers, name, ":", *value, "\n");
  }

  std::string payload(FindHeader(request.headers, absl::StrCat(header_prefix, "content-sha256")));
  if (payload.empty()) {
    if (expected.service == "s3" || is_google) return Refused("no hash of the body");
    payload = Sha256Hex(request.body);
  } else if (payload != "UNSIGNED-PAYLOAD" && payload != Sha256Hex(request.body)) {
    return Refused("the body has another hash");
  }
  const std::pair<absl::string_view, absl::string_view> target =
      absl::StrSplit(request.target, absl::MaxSplits('?', 1));
  const std::string canonical =
      absl::StrJoin({request.method, Encode(WithoutEscapes(target.first), true),
                     CanonicalQuery(target.second), headers, signed_headers, payload},
                    "\n");
  const std::string to_sign = absl::StrJoin({algorithm, time, scope, Sha256Hex(canonical)}, "\n");
  std::string key = absl::StrCat(is_google ? "GOOG4" : "AWS4", expected.secret_access_key);
  for (const absl::string_view part :
       {absl::string_view(date), absl::string_view(expected.region),
        absl::string_view(expected.service), absl::string_view(request_type)}) {
    key = Hmac(key, part);
  }
  const std::string signature = absl::BytesToHexString(Hmac(key, to_sign));
  if (Field(authorization, "Signature") != signature) {
    return Refused(absl::StrCat("it does not fit the request\n", canonical));
  }
  return absl::OkStatus();
}

}  // namespace systole
