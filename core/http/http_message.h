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

// The bytes of a request. Copies share them, so that a large body is in memory once, however many
// attempts are made to send it.
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

// Whose words a signature has.
enum class SigningScheme {
  kAws,     // AWS Signature Version 4: AWS4-HMAC-SHA256, x-amz-date, ..
  kGoogle,  // Cloud Storage's, which differs in these words alone: GOOG4-HMAC-SHA256, x-goog-date.
};

// Signs a request by AWS Signature Version 4, or as Cloud Storage does it, with the time of day.
// All headers are signed, the body is not (UNSIGNED-PAYLOAD for S3 and Cloud Storage), so a body
// needs https.
struct AwsSigning {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token = {};  // Empty: the keys are not temporary.
  std::string region;              // "us-east-1", ..
  std::string service = "s3";
  SigningScheme scheme = SigningScheme::kAws;
};

// What becomes of an answer that redirects. Those to POST, PUT and DELETE are never followed.
enum class Redirects {
  kFollow,
  kReturn,  // It is returned like any other answer. For requests that must not be sent elsewhere.
  kRefuse,  // It is FailedPrecondition. For servers that have no reason to redirect.
};

struct HttpRequest {
  HttpMethod method = HttpMethod::kGet;
  std::string url;
  HttpHeaders headers = {};
  // Of a POST or PUT, sent with its length; empty for other methods.
  HttpBody body = {};
  // The path of `url` must be percent-encoded as the service does it, and its query sorted by name,
  // because both are signed as they are written. A redirect within the origin is signed anew; to
  // another origin the request goes unsigned.
  std::optional<AwsSigning> sign = {};
  std::optional<HttpRange> range = {};
  // For all of the call: waiting for a connection, DNS, redirects, and the whole body.
  absl::Duration timeout = absl::Minutes(1);
  // For DNS, TCP and TLS, if it is shorter than HttpClientOptions::connect_timeout.
  absl::Duration connect_timeout = absl::InfiniteDuration();
  // For a silent server, if it is longer than HttpClientOptions::stall_timeout. For requests whose
  // work takes a server long.
  absl::Duration stall_timeout = absl::ZeroDuration();
  // The most bytes of the body. A server could send without end; this bounds what is kept of it.
  uint64_t max_body_bytes = uint64_t{1} << 20;
  // If it is not empty, the body of an answer 2xx is written here, and its size is the most bytes
  // of the body. Must live until Fetch() returns; nothing is written after that.
  absl::Span<char> into = {};
  // How many bytes of the body of an answer that is no 2xx are kept, at most. They are a server's
  // words: a message may show what was read from them and checked, and never the text itself.
  size_t refusal_bytes = 0;
  // Whether "." and ".." in the path are names, as in buckets. Otherwise the path is simplified.
  bool keeps_dots = false;
  Redirects redirects = Redirects::kFollow;
  // Whether proxies may be used. Not for a server of this machine or of its network link.
  bool uses_proxies = true;
  // What messages call the object, if clients see them, who must not learn its address. Then no
  // message holds an address or a path, not even one that a redirect led to. Empty: messages name
  // the address, and what it leads to, as ShownUrl() shows them.
  std::string called = {};
};

struct HttpResponse {
  int status = 0;  // 200 and above.
  HttpHeaders headers = {};
  // Empty if it was written to HttpRequest::into. Of an answer that is no 2xx, the first
  // HttpRequest::refusal_bytes bytes.
  std::string body = {};
  uint64_t body_bytes = 0;  // There, or in `body`.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_HTTP_MESSAGE_H_
