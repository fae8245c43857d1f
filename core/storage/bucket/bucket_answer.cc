#include "core/storage/bucket/bucket_answer.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "core/storage/bucket/bucket_name.h"
#include "core/xml/xml_reader.h"

namespace systole {
namespace {

constexpr size_t kMaxCodeBytes = 64;
constexpr size_t kMaxRegionBytes = 32;

absl::Status NoPage(absl::string_view why) {
  return absl::DataLossError(absl::StrCat("the list of the bucket ", why));
}

absl::Status CheckKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (key.empty() || key.size() > kMaxKeyBytes) {
      return NoPage(absl::StrCat("has a key of ", key.size(), " bytes, want 1 to ", kMaxKeyBytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsRegion(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxRegionBytes && text.front() != '-' &&
         text.back() != '-' && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
         });
}

absl::StatusOr<ListPage> ParseListPage(absl::string_view body) {
  ListPage page;
  bool is_list = false;
  bool is_truncated = false;
  bool is_encoded = false;
  std::string key;
  ListedObject object;
  SYSTOLE_RETURN_IF_ERROR(ReadXml(body, [&](absl::string_view path, absl::string_view text) {
    if (path == "ListBucketResult") {
      is_list = true;
    } else if (path == "ListBucketResult/Contents/Key") {
      key = std::string(text);
    } else if (path == "ListBucketResult/Contents/Size") {
      uint64_t size_bytes = 0;
      object.size_bytes.reset();
      if (absl::SimpleAtoi(text, &size_bytes)) object.size_bytes = size_bytes;
    } else if (path == "ListBucketResult/Contents/ETag") {
      object.etag = std::string(text);
    } else if (path == "ListBucketResult/Contents/Generation") {
      object.generation = std::string(text);
    } else if (path == "ListBucketResult/Contents") {
      page.keys.push_back(std::exchange(key, {}));
      page.objects.push_back(std::exchange(object, {}));
    } else if (path == "ListBucketResult/CommonPrefixes/Prefix") {
      page.folders.emplace_back(text);
    } else if (path == "ListBucketResult/IsTruncated") {
      is_truncated = text == "true";
    } else if (path == "ListBucketResult/NextContinuationToken") {
      page.next_token = std::string(text);
    } else if (path == "ListBucketResult/EncodingType") {
      is_encoded = text == "url";
    }
    return absl::OkStatus();
  }));
  if (!is_list) return NoPage("is not a ListBucketResult");
  if (is_truncated && page.next_token.empty()) {
    return NoPage("says that more pages follow, but not where the next one begins");
  }
  if (!is_truncated) page.next_token.clear();
  if (is_encoded) {
    for (std::string& key : page.keys) key = DecodedKey(key);
    for (std::string& folder : page.folders) folder = DecodedKey(folder);
  }
  SYSTOLE_RETURN_IF_ERROR(CheckKeys(page.keys));
  SYSTOLE_RETURN_IF_ERROR(CheckKeys(page.folders));
  for (const std::string& folder : page.folders) {
    if (folder.back() != '/') return NoPage("has a folder without a '/' at its end");
  }
  return page;
}

absl::StatusOr<std::string> ParseUploadId(absl::string_view body) {
  std::string id;
  SYSTOLE_RETURN_IF_ERROR(ReadXml(body, [&id](absl::string_view path, absl::string_view text) {
    if (path == "InitiateMultipartUploadResult/UploadId") {
      id = std::string(absl::StripAsciiWhitespace(text));
    }
    return absl::OkStatus();
  }));
  if (id.empty() || id.size() > kMaxUploadIdBytes ||
      !std::all_of(id.begin(), id.end(), [](char c) { return absl::ascii_isgraph(c); })) {
    return absl::DataLossError(absl::StrCat(
        "the answer to the beginning of an upload has no ID, or an invalid one; want 1 to ",
        kMaxUploadIdBytes, " bytes of printable ASCII"));
  }
  return id;
}

absl::StatusOr<std::optional<BucketRefusal>> ParseUploadEnd(absl::string_view body) {
  bool is_end = false;
  bool is_error = false;
  // While a server joins the parts, it may send blanks before the XML.
  SYSTOLE_RETURN_IF_ERROR(ReadXml(absl::StripLeadingAsciiWhitespace(body),
                                  [&](absl::string_view path, absl::string_view) {
                                    is_end = is_end || path == "CompleteMultipartUploadResult";
                                    is_error = is_error || path == "Error";
                                    return absl::OkStatus();
                                  }));
  if (is_end) return std::nullopt;
  if (is_error) return ParseRefusal(absl::StripLeadingAsciiWhitespace(body));
  return absl::DataLossError(
      "the answer to the end of an upload is not a CompleteMultipartUploadResult");
}

BucketRefusal ParseRefusal(absl::string_view body) {
  BucketRefusal refusal;
  // If the text is cut or is not XML, the values before the fault are still used.
  ReadXml(body, [&](absl::string_view path, absl::string_view text) {
    if (path == "Error/Code" && !text.empty() && text.size() <= kMaxCodeBytes &&
        std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isalnum(c); })) {
      refusal.code = std::string(text);
    } else if (path == "Error/Region" && IsRegion(text)) {
      refusal.region = std::string(text);
    }
    return absl::OkStatus();
  }).IgnoreError();
  return refusal;
}

}  // namespace systole
