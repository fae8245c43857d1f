// The requests that write one object of a bucket, either in one piece or in parts. S3 calls them
// PutObject, CreateMultipartUpload, UploadPart, CompleteMultipartUpload and AbortMultipartUpload.
// The XML API of Cloud Storage has the same requests.
#ifndef SYSTOLE_CORE_STORAGE_BUCKET_OBJECT_UPLOAD_H_
#define SYSTOLE_CORE_STORAGE_BUCKET_OBJECT_UPLOAD_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/http/http_message.h"
#include "core/storage/bucket/bucket_dialect.h"
#include "core/storage/bucket/bucket_name.h"
#include "core/storage/web/web_source.h"

namespace systole {

// The most parts of an object, in S3 and in Cloud Storage.
inline constexpr int kMaxUploadParts = 10'000;
// The most time that ObjectUpload::Abort() takes.
inline constexpr absl::Duration kMaxAbortTime = absl::Seconds(10);

// Thread-compatible; calls of PutPart() may be concurrent. Borrows connection and dialect. Each
// request may be sent twice without harm. So failed requests are tried again, as for reads. Errors
// are those of HttpClient::Fetch() and BucketDialect::WriteRefusalOf(), with the object's name.
class ObjectUpload {
 public:
  ObjectUpload(WebConnection& connection, const BucketDialect& dialect, BucketName name)
      : connection_(connection), dialect_(dialect), name_(std::move(name)) {}

  absl::Status PutWhole(HttpBody bytes) const;

  // Begins an upload in parts. Errors are also those of ParseUploadId().
  absl::Status Begin();
  bool has_begun() const { return !id_.empty(); }
  // The next three functions require that Begin() has returned OK.

  // Sends a part, and returns its ETag. `number` is 1 for the first part, and at most
  // kMaxUploadParts.
  absl::StatusOr<std::string> PutPart(int number, HttpBody bytes) const;
  // Makes the object from the parts 1, 2, .., which have these ETags. Even after an error the
  // object may exist as a whole: perhaps only the server's answer was lost.
  absl::Status End(absl::Span<const std::string> etags) const;
  // Makes the server forget the parts, even if the thread is interrupted. Takes kMaxAbortTime at
  // most. Ignores errors.
  void Abort() const;

  // Removes the object. NotFound if the server answers that there is no such object. S3 answers OK
  // instead.
  absl::Status RemoveObject() const;

 private:
  // `query` is empty for a request about the object itself.
  HttpRequest RequestFor(HttpMethod method,
                         std::vector<std::pair<std::string, std::string>> query) const;
  // A request that sends `bytes`. The more bytes it sends, the longer its timeout.
  HttpRequest SendRequestFor(std::vector<std::pair<std::string, std::string>> query,
                             HttpBody bytes) const;
  absl::StatusOr<HttpResponse> Fetch(
      const HttpRequest& request, WebConnection::AnswerCheck check = [](const HttpResponse&) {
        return absl::OkStatus();
      }) const;
  // `response` is an answer 2xx to the request that ends the upload. OK if its body says that the
  // object exists.
  absl::Status CheckEnd(const HttpResponse& response) const;
  // Whether this upload made the object that exists now: its metadata has `mark_`.
  bool IsThere() const;

  WebConnection& connection_;
  const BucketDialect& dialect_;
  const BucketName name_;
  std::string id_;    // The upload's ID.
  std::string mark_;  // Random, in the object's metadata. May be empty.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_OBJECT_UPLOAD_H_
