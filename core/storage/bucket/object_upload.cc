#include "core/storage/bucket/object_upload.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/http/http_headers.h"
#include "core/interrupt/interrupt.h"
#include "core/status/status_macros.h"
#include "core/storage/bucket/bucket_answer.h"
#include "core/text/foreign_text.h"
#include "core/text/markup_text.h"

namespace systole {
namespace {

// A server may take some minutes to make one object from its parts. Meanwhile the server sends
// almost no bytes.
constexpr absl::Duration kEndTime = absl::Minutes(15);
constexpr absl::Duration kEndSilence = absl::Minutes(5);

// The lowest speed of a request that sends bytes. If a server takes no bytes at all, the stall
// timeout ends the request.
constexpr size_t kSlowestBytesPerSecond = size_t{64} << 10;

constexpr size_t kMaxEtagBytes = 256;

// The name of the metadata that says which upload made an object.
constexpr absl::string_view kMarkName = "systole-upload";

// Codes of refusals that a server may send in the body of an answer 200, and after which another
// attempt may help.
constexpr absl::string_view kPassingCodes[] = {"InternalError", "SlowDown", "ServiceUnavailable",
                                               "RequestTimeout"};

// A mark that no other upload has. Empty if the kernel gives no random bytes.
std::string MakeMark() {
  std::array<char, 16> random;
  const ssize_t given = ::getrandom(random.data(), random.size(), 0);
  if (given != static_cast<ssize_t>(random.size())) return "";
  return absl::BytesToHexString(absl::string_view(random.data(), random.size()));
}

std::string ListOfParts(absl::Span<const std::string> etags) {
  std::string xml = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < etags.size(); ++i) {
    absl::StrAppend(&xml, "<Part><PartNumber>", i + 1, "</PartNumber><ETag>",
                    EscapeMarkup(etags[i]), "</ETag></Part>");
  }
  return xml + "</CompleteMultipartUpload>";
}

}  // namespace

HttpRequest ObjectUpload::RequestFor(HttpMethod method,
                                     std::vector<std::pair<std::string, std::string>> query) const {
  const BucketTarget target = {.name = name_, .query = EncodedQuery(std::move(query))};
  return {.method = method, .url = target.Url(), .timeout = connection_.options().timeout};
}

HttpRequest ObjectUpload::SendRequestFor(std::vector<std::pair<std::string, std::string>> query,
                                         HttpBody bytes) const {
  HttpRequest request = RequestFor(HttpMethod::kPut, std::move(query));
  request.headers = {{"content-type", "application/octet-stream"}};
  request.timeout += absl::Seconds(bytes.bytes().size() / kSlowestBytesPerSecond);
  request.body = std::move(bytes);
  return request;
}

absl::StatusOr<HttpResponse> ObjectUpload::Fetch(const HttpRequest& request,
                                                 WebConnection::AnswerCheck check) const {
  absl::StatusOr<HttpResponse> response = connection_.Fetch(request, check);
  const std::string text = name_.Text();
  if (!response.ok()) return WithName(response.status(), text);
  if (response->status >= 200 && response->status < 300) return response;
  return dialect_.WriteRefusalOf(absl::StrCat("\"", ForeignText(text), "\""), *response);
}

absl::Status ObjectUpload::PutWhole(HttpBody bytes) const {
  return Fetch(SendRequestFor({}, std::move(bytes))).status();
}

absl::Status ObjectUpload::Begin() {
  HttpRequest request = RequestFor(HttpMethod::kPost, {{"uploads", ""}});
  request.headers = {{"content-type", "application/octet-stream"}};
  mark_ = MakeMark();
  if (!mark_.empty()) {
    request.headers.emplace_back(absl::StrCat(dialect_.metadata_prefix(), kMarkName), mark_);
  }
  SYSTOLE_ASSIGN_OR_RETURN(const HttpResponse response, Fetch(request));
  absl::StatusOr<std::string> id = ParseUploadId(response.body);
  if (!id.ok()) return WithName(id.status(), name_.Text());
  id_ = *std::move(id);
  return absl::OkStatus();
}

absl::StatusOr<std::string> ObjectUpload::PutPart(int number, HttpBody bytes) const {
  const HttpRequest request =
      SendRequestFor({{"partNumber", absl::StrCat(number)}, {"uploadId", id_}}, std::move(bytes));
  SYSTOLE_ASSIGN_OR_RETURN(const HttpResponse response, Fetch(request));
  const absl::string_view etag = FindHeader(response.headers, "etag");
  if (etag.empty() || etag.size() > kMaxEtagBytes ||
      !std::all_of(etag.begin(), etag.end(), [](char c) { return absl::ascii_isprint(c); })) {
    return absl::DataLossError(absl::StrCat("\"", ForeignText(name_.Text()),
                                            "\": the answer to a part has no ETag, or an invalid "
                                            "one; check that this is a server of buckets"));
  }
  return std::string(etag);
}

absl::Status ObjectUpload::CheckEnd(const HttpResponse& response) const {
  const absl::StatusOr<std::optional<BucketRefusal>> end = ParseUploadEnd(response.body);
  if (!end.ok()) return WithName(end.status(), name_.Text());
  if (!end->has_value()) return absl::OkStatus();
  const std::string& code = (*end)->code;
  const bool passes = std::find(std::begin(kPassingCodes), std::end(kPassingCodes), code) !=
                      std::end(kPassingCodes);
  return absl::Status(
      passes ? absl::StatusCode::kUnavailable : absl::StatusCode::kFailedPrecondition,
      absl::StrCat("\"", ForeignText(name_.Text()),
                   "\": the server answers with status 200, but then says that it cannot make the "
                   "object from its parts (",
                   code.empty() ? "without a code" : code, "); write the object again"));
}

absl::Status ObjectUpload::End(absl::Span<const std::string> etags) const {
  HttpRequest request = RequestFor(HttpMethod::kPost, {{"uploadId", id_}});
  request.headers = {{"content-type", "application/xml"}};
  request.body = HttpBody(ListOfParts(etags));
  request.timeout = std::max(request.timeout, kEndTime);
  request.stall_timeout = kEndSilence;
  const absl::Status ended =
      Fetch(request, [this](const HttpResponse& answer) { return CheckEnd(answer); }).status();
  // If only the answer to an earlier attempt was lost, the upload has ended. Then the server may
  // refuse a later attempt, because it no longer knows the upload.
  return ended.ok() || IsThere() ? absl::OkStatus() : ended;
}

bool ObjectUpload::IsThere() const {
  if (mark_.empty()) return false;
  const absl::StatusOr<HttpResponse> head = Fetch(RequestFor(HttpMethod::kHead, {}));
  return head.ok() &&
         FindHeader(head->headers, absl::StrCat(dialect_.metadata_prefix(), kMarkName)) == mark_;
}

void ObjectUpload::Abort() const {
  const InterruptFlag never;
  const InterruptScope scope(never);
  HttpRequest request = RequestFor(HttpMethod::kDelete, {{"uploadId", id_}});
  request.timeout = std::min(request.timeout, kMaxAbortTime);
  Fetch(request).status().IgnoreError();
}

absl::Status ObjectUpload::RemoveObject() const {
  return Fetch(RequestFor(HttpMethod::kDelete, {})).status();
}

}  // namespace systole
