#include "tests/core/storage/bucket/stub_bucket.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/core/http/sigv4_verifier.h"
#include "tests/core/http/stub_http_server.h"
#include "tests/core/http/stub_objects.h"

namespace systole {
namespace {

// Encodes a key as S3 does in lists: blanks as '+'.
std::string EscapedForList(const std::string& key) {
  std::string escaped;
  for (const char c : key) {
    const bool plain = absl::ascii_isalnum(c) || absl::StrContains("-_.*/", c);
    if (plain) {
      escaped += c;
    } else if (c == ' ') {
      escaped += '+';
    } else {
      absl::StrAppend(&escaped, "%", absl::BytesToHexString(std::string(1, c)));
    }
  }
  return escaped;
}

std::map<std::string, std::string> ParametersOf(absl::string_view query) {
  std::map<std::string, std::string> parameters;
  for (const absl::string_view part : absl::StrSplit(query, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> both =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    parameters[WithoutEscapes(both.first)] = WithoutEscapes(both.second);
  }
  return parameters;
}

int CountRequests(const std::vector<StubRequest>& requests, bool lists) {
  return static_cast<int>(
      std::count_if(requests.begin(), requests.end(), [lists](const StubRequest& request) {
        return absl::StrContains(request.target, "list-type=2") == lists;
      }));
}

}  // namespace

StubAnswer RefuseInXml(int status, absl::string_view code, absl::string_view more,
                       const HttpHeaders& headers) {
  return Reply(status,
               absl::StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>", code,
                            "</Code><Message>words of the server</Message>", more, "</Error>"),
               headers);
}

StubBucket::StubBucket(const StubBucketOptions& options, const StubCertificate* certificate)
    : is_gcs_(options.is_gcs),
      page_keys_(options.page_keys),
      min_part_bytes_(options.min_part_bytes),
      sign_(options.sign),
      token_(options.token),
      server_([this](const StubRequest& request) { return Usual(request); }, certificate) {}

std::string StubBucket::Name(const std::string& key) const {
  return absl::StrCat(is_gcs_ ? "gs://" : "s3://", kStubBucket, "/", key);
}

std::string StubBucket::Put(const std::string& key, std::string bytes) {
  MutexLock lock(mu_);
  objects_[key] = {std::move(bytes), ++puts_};
  return Name(key);
}

std::optional<std::string> StubBucket::Get(const std::string& key) const {
  MutexLock lock(mu_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  return found->second.bytes;
}

int StubBucket::uploads() const {
  MutexLock lock(mu_);
  return static_cast<int>(uploads_.size());
}

void StubBucket::Remove(const std::string& key) {
  MutexLock lock(mu_);
  objects_.erase(key);
}

void StubBucket::Renew(const AwsSigning& sign) {
  MutexLock lock(mu_);
  if (sign_.has_value()) expired_.insert(sign_->access_key_id);
  sign_ = sign;
}

void StubBucket::Renew(const std::string& token) {
  MutexLock lock(mu_);
  token_ = token;
}

int StubBucket::lists() const { return CountRequests(server_.server().requests(), true); }

int StubBucket::reads() const { return CountRequests(server_.server().requests(), false); }

std::optional<StubAnswer> StubBucket::Refuses(const StubRequest& request) {
  const std::string authorization(FindHeader(request.headers, "authorization"));
  if (!token_.empty() && authorization != absl::StrCat("Bearer ", token_)) {
    return authorization.empty() ? RefuseInXml(403, "AccessDenied")
                                 : RefuseInXml(401, "AuthenticationRequired");
  }
  if (!sign_.has_value()) return std::nullopt;
  if (authorization.empty()) return RefuseInXml(403, "AccessDenied");
  for (const std::string& id : expired_) {
    if (absl::StrContains(authorization, id)) return RefuseInXml(400, "ExpiredToken");
  }
  if (!absl::StrContains(authorization, sign_->access_key_id)) {
    return RefuseInXml(403, "InvalidAccessKeyId");
  }
  if (VerifySigV4(request, *sign_).ok()) return std::nullopt;
  return RefuseInXml(403, "SignatureDoesNotMatch");
}

StubAnswer StubBucket::ServeObject(const StubRequest& request, const std::string& key) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return RefuseInXml(404, "NoSuchKey");
  const std::string etag = absl::StrCat("\"", found->second.put, "\"");
  const std::string generation = absl::StrCat(1000 + found->second.put);
  const absl::string_view if_match = FindHeader(request.headers, "if-match");
  const absl::string_view if_generation = FindHeader(request.headers, "x-goog-if-generation-match");
  if ((!if_match.empty() && if_match != etag) ||
      (is_gcs_ && !if_generation.empty() && if_generation != generation)) {
    return RefuseInXml(412, "PreconditionFailed");
  }
  HttpHeaders headers = {{"ETag", etag}};
  if (is_gcs_) headers.emplace_back("x-goog-generation", generation);
  headers.insert(headers.end(), found->second.metadata.begin(), found->second.metadata.end());
  return ServeBytes(request, found->second.bytes, headers);
}

HttpHeaders StubBucket::MetadataOf(const StubRequest& request) const {
  HttpHeaders metadata;
  for (const auto& header : request.headers) {
    if (absl::StartsWith(header.first, is_gcs_ ? "x-goog-meta-" : "x-amz-meta-")) {
      metadata.push_back(header);
    }
  }
  return metadata;
}

StubAnswer StubBucket::ServeWrite(const StubRequest& request, const std::string& key,
                                  const std::map<std::string, std::string>& query) {
  if (const auto id = query.find("uploadId"); id != query.end()) {
    const auto part = query.find("partNumber");
    return ServeUpload(request, id->second, part == query.end() ? "" : part->second);
  }
  if (query.count("uploads") > 0) {
    const std::string id = absl::StrCat("upload/", ++puts_, "+=");
    uploads_[id] = {key, MetadataOf(request), {}};
    return Reply(200, absl::StrCat("<InitiateMultipartUploadResult><Bucket>", kStubBucket,
                                   "</Bucket><UploadId>", id,
                                   "</UploadId></InitiateMultipartUploadResult>"));
  }
  if (request.method == "PUT") {
    objects_[key] = {request.body, ++puts_, MetadataOf(request)};
    return Reply(200, "", {{"ETag", absl::StrCat("\"", puts_, "\"")}});
  }
  const size_t removed = objects_.erase(key);
  return is_gcs_ && removed == 0 ? RefuseInXml(404, "NoSuchKey") : StubAnswer{Head(204, {})};
}

StubAnswer StubBucket::ServeUpload(const StubRequest& request, const std::string& id,
                                   const std::string& part) {
  const auto found = uploads_.find(id);
  if (found == uploads_.end()) return RefuseInXml(404, "NoSuchUpload");
  if (request.method == "POST") return EndUpload(request, id);
  if (request.method == "DELETE") {
    uploads_.erase(found);
    return {Head(204, {})};
  }
  int number = 0;
  if (!absl::SimpleAtoi(part, &number) || number < 1) return RefuseInXml(400, "InvalidArgument");
  found->second.parts[number] = request.body;
  return Reply(200, "", {{"ETag", absl::StrCat("\"", EtagOf(id, number), "\"")}});
}

StubAnswer StubBucket::EndUpload(const StubRequest& request, const std::string& id) {
  Upload& upload = uploads_[id];
  std::string wanted = "<CompleteMultipartUpload>";
  std::string bytes;
  for (const auto& [number, part] : upload.parts) {
    absl::StrAppend(&wanted, "<Part><PartNumber>", number, "</PartNumber><ETag>&quot;",
                    absl::StrReplaceAll(EtagOf(id, number), {{"&", "&amp;"}}),
                    "&quot;</ETag></Part>");
    bytes += part;
    const bool is_last = number == upload.parts.rbegin()->first;
    if (!is_last && part.size() < min_part_bytes_) return RefuseInXml(400, "EntityTooSmall");
  }
  if (request.body != wanted + "</CompleteMultipartUpload>") return RefuseInXml(400, "InvalidPart");
  objects_[upload.key] = {bytes, ++puts_, upload.metadata};
  uploads_.erase(id);
  return Reply(200, absl::StrCat(" \n<?xml version=\"1.0\"?>\n<CompleteMultipartUploadResult>"
                                 "<ETag>&quot;1&quot;</ETag></CompleteMultipartUploadResult>"));
}

StubAnswer StubBucket::ServeList(const std::map<std::string, std::string>& query) {
  const auto value = [&](const std::string& name) {
    const auto found = query.find(name);
    return found == query.end() ? std::string() : found->second;
  };
  const std::string prefix = value("prefix");
  const std::string delimiter = value("delimiter");
  const bool encodes = value("encoding-type") == "url";
  size_t most = page_keys_;
  if (size_t asked = 0; absl::SimpleAtoi(value("max-keys"), &asked)) most = std::min(most, asked);
  // A token is the last key or folder of the previous page, in Base64.
  std::string token;
  absl::WebSafeBase64Unescape(value("continuation-token"), &token);
  const std::string after = token.empty() ? value("start-after") : token;
  std::string entries;
  std::string last;
  size_t count = 0;
  bool truncated = false;
  for (auto at = objects_.lower_bound(std::max(prefix, after));
       at != objects_.end() && absl::StartsWith(at->first, prefix); ++at) {
    std::string entry = at->first;
    const size_t end = delimiter.empty() ? std::string::npos : entry.find(delimiter, prefix.size());
    const bool is_folder = end != std::string::npos;
    if (is_folder) entry.resize(end + delimiter.size());
    if (entry == last || (!after.empty() && entry <= after)) continue;
    if (count == most) {
      truncated = true;
      break;
    }
    ++count;
    last = entry;
    const std::string shown = encodes ? EscapedForList(entry) : entry;
    absl::StrAppend(&entries, is_folder ? "<CommonPrefixes><Prefix>" : "<Contents><Key>", shown,
                    is_folder
                        ? "</Prefix></CommonPrefixes>"
                        : absl::StrCat("</Key><Size>", at->second.bytes.size(),
                                       "</Size><ETag>&quot;", at->second.put, "&quot;</ETag>",
                                       is_gcs_ ? absl::StrCat("<Generation>", 1000 + at->second.put,
                                                              "</Generation>")
                                               : "",
                                       "</Contents>"));
  }
  return Reply(
      200, absl::StrCat(
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns="
               "\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>",
               kStubBucket, "</Name>",
               truncated ? absl::StrCat("<NextContinuationToken>", absl::WebSafeBase64Escape(last),
                                        "</NextContinuationToken>")
                         : "",
               entries, "<IsTruncated>", truncated ? "true" : "false", "</IsTruncated>",
               encodes ? "<EncodingType>url</EncodingType>" : "", "</ListBucketResult>"));
}

StubAnswer StubBucket::Usual(const StubRequest& request) {
  MutexLock lock(mu_);
  if (std::optional<StubAnswer> refusal = Refuses(request); refusal.has_value()) {
    return Bodiless(request, *std::move(refusal));
  }
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(request.target, absl::MaxSplits('?', 1));
  absl::string_view path = parts.first;
  const std::string bucket = absl::StrCat("/", kStubBucket);
  if (!absl::ConsumePrefix(&path, bucket) || (!path.empty() && path[0] != '/')) {
    return Bodiless(request, RefuseInXml(404, "NoSuchBucket"));
  }
  const std::map<std::string, std::string> query = ParametersOf(parts.second);
  if (path.size() <= 1) return ServeList(query);
  const std::string key = WithoutEscapes(path.substr(1));
  if (request.method == "GET" || request.method == "HEAD") {
    return Bodiless(request, ServeObject(request, key));
  }
  return ServeWrite(request, key, query);
}

namespace {

StubBucket* BucketInEnvironment() {
  auto* const made = new StubBucket();
  ::setenv("AWS_ENDPOINT_URL_S3", made->endpoint().c_str(), 1);
  ::setenv("AWS_REGION", "eu-west-1", 1);
  return made;
}

}  // namespace

StubBucket& UnsignedBucketOfProcess() {
  static StubBucket* const bucket = [] {
    StubBucket* const made = BucketInEnvironment();
    ::setenv("SYSTOLE_S3_UNSIGNED", "1", 1);
    return made;
  }();
  return *bucket;
}

StubBucket& SignedBucketOfProcess() {
  static StubBucket* const bucket = [] {
    StubBucket* const made = BucketInEnvironment();
    ::setenv("AWS_ACCESS_KEY_ID", "AKIDOFTEST", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "SECRETOFTEST", 1);
    return made;
  }();
  return *bucket;
}

}  // namespace systole
