// A request and its answer.
//
// Thread-compatible: values.
#ifndef SYSTOLE_CORE_HTTP_HTTP_MESSAGE_H_
#define SYSTOLE_CORE_HTTP_HTTP_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/http/http_headers.h"

namespace systole {

enum class HttpMethod { kGet, kHead, kPost, kPut, kDelete };

// The bytes of a request's body. Copies share these bytes, so that a large body is in memory only
// once, however many attempts are made to send it.
class HttpBody {
 public:
  HttpBody() = default;
  explicit HttpBody(std::string bytes)
      : bytes_(std::make_shared<const std::string>(std::move(bytes))) {}

  absl::string_view bytes() const {
    return bytes_ == nullptr ? absl::string_view() : absl::string_view(*bytes_);
  }
  bool empty() const { return bytes().empty(); }

 private:
  std::shared_ptr<const std::string> bytes_;
};

// The bytes [begin, end) of an object. Not empty.
struct HttpRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Which service's names and constants a signature uses.
enum class SigningScheme {
  kAws,     // AWS Signature Version 4: AWS4-HMAC-SHA256, x-amz-date, ..
  kGoogle,  // Cloud Storage's scheme. Only the names differ: GOOG4-HMAC-SHA256, x-goog-date.
};

// Signs a request by AWS Signature Version 4, or by Cloud Storage's form of it. The signature
// contains the current time. All headers are signed. The body is not signed (UNSIGNED-PAYLOAD for
// S3 and Cloud Storage), so only https protects it.
struct AwsSigning {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token = {};  // Empty: the keys are not temporary.
  std::string region;              // "us-east-1", ..
  std::string service = "s3";
  SigningScheme scheme = SigningScheme::kAws;
};

// What is done with an answer that redirects. Redirects of POST, PUT and DELETE are never followed.
enum class Redirects {
  kFollow,
  kReturn,  // The answer is returned like any other. For requests that must not be sent elsewhere.
  kRefuse,  // The call returns FailedPrecondition. For servers that have no reason to redirect.
};

struct HttpRequest {
  HttpMethod method = HttpMethod::kGet;
  std::string url;
  HttpHeaders headers = {};
  // The body of a POST or PUT, sent with its length. Empty for other methods.
  HttpBody body = {};
  // How the request is signed. nullopt: it is not signed. Path and query of `url` are signed as
  // they are written. So the path must be percent-encoded in the service's way, and the query must
  // be sorted by name. After a redirect within the origin the request is signed anew. A redirect to
  // another origin is followed without a signature.
  std::optional<AwsSigning> sign = {};
  std::optional<HttpRange> range = {};
  // The time for the whole call: the wait for a connection, DNS, redirects, and the whole body.
  absl::Duration timeout = absl::Minutes(1);
  // Replaces HttpClientOptions::connect_timeout if it is shorter.
  absl::Duration connect_timeout = absl::InfiniteDuration();
  // Replaces HttpClientOptions::stall_timeout if it is longer. For requests on which a server works
  // for a long time.
  absl::Duration stall_timeout = absl::ZeroDuration();
  // The most bytes of the body of a 2xx answer, if `into` is empty. A larger body is an error.
  uint64_t max_body_bytes = uint64_t{1} << 20;
  // If `into` is not empty, the body of a 2xx answer is written here, and a body of more than
  // into.size() bytes is an error. The memory must live until Fetch() returns. Nothing is written
  // after that.
  absl::Span<char> into = {};
  // The most bytes that are kept of the body of an answer that is not 2xx. The server chooses these
  // bytes. So a message may show values that were parsed from these bytes and checked, but never
  // the bytes themselves.
  size_t refusal_bytes = 0;
  // Whether "." and ".." in the path are kept, because they are parts of a name in a bucket.
  // Otherwise the path is simplified.
  bool keeps_dots = false;
  Redirects redirects = Redirects::kFollow;
  // Whether proxies may be used. They must not be used for a server of this machine or of its
  // network link.
  bool uses_proxies = true;
  // The name of the object in messages. If it is set, no message has an address or a path, not even
  // of a redirect. Set it if clients see the messages, because clients must not learn the address.
  // Empty: messages name the address and the addresses of redirects, as ShownUrl() shows them.
  std::string called = {};
};

struct HttpResponse {
  int status = 0;  // 200 and above.
  HttpHeaders headers = {};
  // The body. Empty if it was written to HttpRequest::into. If the answer is not 2xx, only the
  // first HttpRequest::refusal_bytes bytes of the body are here.
  std::string body = {};
  uint64_t body_bytes = 0;  // The bytes in HttpRequest::into, or in `body`.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_HTTP_MESSAGE_H_
