#include "core/http/aws_signature.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace systole {
namespace {

constexpr unsigned kFirstLibcurl = 0x075600;  // 7.86.0

// Whether the value can be a part of the signature's scope, KEY/DATE/REGION/SERVICE/aws4_request.
bool IsScopePart(absl::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-';
  });
}

// In the Authorization header, a comma ends the key. So the key must not contain a comma.
bool IsAccessKeyId(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return absl::ascii_isgraph(c) && c != ','; });
}

}  // namespace

absl::Status CheckAwsSigning(const AwsSigning& sign, absl::string_view object) {
  const auto refuse = [object](absl::string_view field, absl::string_view want) {
    return absl::InvalidArgumentError(absl::StrCat("a request for ", object,
                                                   " cannot be signed for AWS: the ", field,
                                                   " is malformed; want ", want));
  };
  if (!IsAccessKeyId(sign.access_key_id)) {
    return refuse("access key ID", "printable ASCII without blanks and commas");
  }
  if (sign.secret_access_key.empty() || sign.secret_access_key.find('\0') != std::string::npos) {
    return refuse("secret access key", "a text that is not empty");
  }
  if (!sign.session_token.empty() &&
      !IsSendableHeader("x-amz-security-token", sign.session_token)) {
    return refuse("session token", "printable ASCII");
  }
  if (!IsScopePart(sign.region)) {
    return refuse("region", "one such as us-east-1: letters, digits and '-'");
  }
  if (!IsScopePart(sign.service)) return refuse("service", "letters, digits and '-'");
  if (sign.scheme == SigningScheme::kGoogle && !sign.session_token.empty()) {
    return refuse("session token", "none, because Cloud Storage has no temporary keys");
  }
  return absl::OkStatus();
}

absl::Status CheckLibcurlSigns(unsigned version_num, absl::string_view version) {
  if (version_num >= kFirstLibcurl) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("libcurl ", version,
                   " is loaded, which is too old to sign requests for buckets; let the "
                   "process load libcurl 7.86 or newer"));
}

HttpHeaders AwsHeaders(const AwsSigning& sign) {
  HttpHeaders headers;
  // The body is not hashed. TLS protects it, and a hash would have to be sent before the body.
  if (sign.scheme == SigningScheme::kGoogle) {
    headers.emplace_back("x-goog-content-sha256", "UNSIGNED-PAYLOAD");
    return headers;
  }
  if (sign.service == "s3") headers.emplace_back("x-amz-content-sha256", "UNSIGNED-PAYLOAD");
  if (!sign.session_token.empty()) {
    headers.emplace_back("x-amz-security-token", sign.session_token);
  }
  return headers;
}

std::string AwsProvider(const AwsSigning& sign) {
  const bool is_google = sign.scheme == SigningScheme::kGoogle;
  return absl::StrCat(is_google ? "goog:goog:" : "aws:amz:", sign.region, ":", sign.service);
}

}  // namespace systole
