#include "core/storage/bucket/bucket_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/storage/byte_source.h"
#include "core/text/foreign_text.h"
#include "core/text/percent_text.h"

namespace systole {
namespace {

constexpr size_t kMinBucketBytes = 3;
constexpr size_t kMaxBucketBytes = 63;
// The most bytes of a bucket's name in Cloud Storage if the name is a domain. Each part between
// dots has at most kMaxBucketBytes.
constexpr size_t kMaxDomainBytes = 222;

absl::Status Malformed(absl::string_view name, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("\"", ForeignText(ShownName(name)), "\" ", why));
}

bool IsLowerOrDigit(char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); }

bool IsBucket(absl::string_view scheme, absl::string_view bucket) {
  const bool is_gs = scheme == "gs";
  const size_t most = is_gs && absl::StrContains(bucket, '.') ? kMaxDomainBytes : kMaxBucketBytes;
  if (bucket.size() < kMinBucketBytes || bucket.size() > most) return false;
  if (!IsLowerOrDigit(bucket.front()) || !IsLowerOrDigit(bucket.back())) return false;
  const bool fit = std::all_of(bucket.begin(), bucket.end(), [is_gs](char c) {
    return IsLowerOrDigit(c) || c == '-' || c == '.' || (is_gs && c == '_');
  });
  const std::vector<absl::string_view> parts = absl::StrSplit(bucket, '.');
  return fit && std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
           return !part.empty() && part.size() <= kMaxBucketBytes;
         });
}

bool IsUnreserved(char c) {
  return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

std::string PercentEncoded(absl::string_view text, absl::string_view kept) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (IsUnreserved(c) || absl::StrContains(kept, c)) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

}  // namespace

std::string BucketName::Root() const { return absl::StrCat(scheme, "://", bucket, "/"); }

std::string BucketName::Text() const { return Root() + key; }

absl::StatusOr<BucketName> ParseBucketName(absl::string_view name) {
  const size_t colon = std::min(name.size(), name.find("://"));
  BucketName parsed = {.scheme = std::string(name.substr(0, colon)), .bucket = {}, .key = {}};
  if (colon == name.size() || (parsed.scheme != "s3" && parsed.scheme != "gs")) {
    return Malformed(name, "names no object in a bucket; want s3://BUCKET/KEY or gs://BUCKET/KEY");
  }
  const absl::string_view rest = name.substr(colon + 3);
  const size_t slash = std::min(rest.size(), rest.find('/'));
  parsed.bucket = std::string(rest.substr(0, slash));
  if (absl::StrContains(parsed.bucket, '@') || absl::StrContains(parsed.bucket, ':')) {
    return Malformed(name,
                     "was written with keys or a port before the bucket; want s3://BUCKET/KEY, and "
                     "keys and endpoint in the environment (AWS_ACCESS_KEY_ID, .., "
                     "AWS_ENDPOINT_URL_S3)");
  }
  if (!IsBucket(parsed.scheme, parsed.bucket)) {
    return Malformed(name,
                     "has an invalid bucket name; a bucket's name has 3 to 63 of the "
                     "characters a-z, 0-9, '-' and '.', and no wildcards");
  }
  if (slash < rest.size()) parsed.key = std::string(rest.substr(slash + 1));
  if (parsed.key.size() > kMaxKeyBytes) {
    return Malformed(name, absl::StrCat("has a key of ", parsed.key.size(), " bytes, want at most ",
                                        kMaxKeyBytes));
  }
  if (std::any_of(parsed.key.begin(), parsed.key.end(),
                  [](char c) { return absl::ascii_iscntrl(c); })) {
    return Malformed(name, "has a control character in its key; copy the object to another key");
  }
  return parsed;
}

absl::Status CheckObjectName(const BucketName& name) {
  if (name.key.empty()) {
    return Malformed(name.Text(), "is a bucket; want an object in it: BUCKET/KEY");
  }
  if (name.key.back() == '/') return Malformed(name.Text(), "is a folder; want a file");
  return absl::OkStatus();
}

absl::Status WithName(const absl::Status& error, absl::string_view name) {
  const std::string shown = ForeignText(ShownName(name));
  if (absl::StrContains(error.message(), shown)) return error;
  return absl::Status(error.code(), absl::StrCat("\"", shown, "\": ", error.message()));
}

std::string EncodedKey(absl::string_view key) { return PercentEncoded(key, "/"); }

std::string EncodedQuery(std::vector<std::pair<std::string, std::string>> parameters) {
  std::sort(parameters.begin(), parameters.end());
  std::string query;
  for (const auto& [name, value] : parameters) {
    absl::StrAppend(&query, query.empty() ? "?" : "&", PercentEncoded(name, ""), "=",
                    PercentEncoded(value, ""));
  }
  return query;
}

std::string DecodedKey(absl::string_view encoded) {
  return PercentDecoded(absl::StrReplaceAll(encoded, {{"+", " "}}));
}

}  // namespace systole
