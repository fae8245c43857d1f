// One request that is being sent, and its answer as it comes in. For http_client.cc and
// client_loop.cc.
#ifndef SYSTOLE_CORE_HTTP_TRANSFER_H_
#define SYSTOLE_CORE_HTTP_TRANSFER_H_

#include <curl/curl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/http/http_client_options.h"
#include "core/http/http_headers.h"
#include "core/http/http_message.h"
#include "core/http/http_names.h"
#include "core/http/http_url.h"
#include "core/interrupt/interrupt.h"
#include "core/interrupt/read_progress.h"

namespace systole {

// Thread-safe. The thread that waits for the answer and the thread that moves the bytes (the loop's
// thread) share a transfer. Either of them may be the last to use the transfer.
class Transfer {
 public:
  // For the thread that waits: the transfer takes the InterruptFlag and the ReadProgress of the
  // thread that calls Create(). `url`, `headers` and `sign` replace those of the request. If `sign`
  // is null, the request goes unsigned. ResourceExhausted if there is not enough memory.
  static absl::StatusOr<std::shared_ptr<Transfer>> Create(
      const HttpClientOptions& options, const HttpRequest& request, const HttpNames& names,
      const HttpUrl& url, const HttpHeaders& headers, const AwsSigning* sign);
  // REQUIRES: the handle is in no multi handle.
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  const std::string& origin() const { return origin_; }

  // For the thread that moves the bytes.
  CURL* handle() const { return handle_; }
  // Ends the transfer with libcurl's result.
  void EndWith(CURLcode code) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the transfer with `status`. Does nothing if the transfer is over already.
  void EndWith(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);
  bool is_abandoned() const ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the thread that waits is interrupted.
  bool is_interrupted() const ABSL_LOCKS_EXCLUDED(mu_);

  // For the thread that waits. Waits until the transfer is over, or until `now` has reached
  // `deadline`. Returns whether the transfer is over. The waiting thread sleeps meanwhile. If this
  // thread is interrupted, the loop's thread ends the transfer.
  bool WaitUntil(absl::Duration deadline, const MonotonicClock& now) ABSL_LOCKS_EXCLUDED(mu_);
  // Nothing is written to HttpRequest::into from now on.
  void Abandon() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the answer. Call it only once. REQUIRES: the transfer is over.
  absl::StatusOr<HttpResponse> TakeAnswer() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Transfer(const HttpRequest& request, const HttpNames& names, const HttpUrl& url);

  // Sets all options of the handle. Returns false if there is not enough memory.
  bool SetUp(const HttpClientOptions& options, const HttpRequest& request, const HttpUrl& url,
             const HttpHeaders& headers);
  bool SetMethod();
  bool SetSigning(const AwsSigning& sign);

  // libcurl calls these with each line of the headers, and with each piece of the body. A result
  // that is not the number of bytes ends the transfer.
  static size_t OnHeader(char* data, size_t size, size_t count, void* transfer);
  static size_t OnBody(char* data, size_t size, size_t count, void* transfer);
  bool TakeHeader(absl::string_view line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TakeEndOfHeaders() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TakeBody(absl::string_view bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Keeps the first error. Returns false.
  bool Fail(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status TooLarge() const;
  absl::Status ErrorOf(CURLcode code) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The flag of the thread that waits. Null: the thread is never interrupted. Read only while the
  // thread waits.
  const InterruptFlag* const flag_ = HeededInterruptFlag();
  const HttpNames names_;
  const std::string server_;  // For messages.
  const std::string origin_;
  const HttpMethod method_;
  const HttpBody body_;  // The request's body. libcurl reads it from here.
  const bool is_ranged_;
  const size_t refusal_bytes_;
  const uint64_t max_body_bytes_;
  // The memory that the next two members point to is written only under mu_, and only if the
  // transfer is not abandoned_.
  const absl::Span<char> into_;
  ReadProgress* const progress_ = CurrentReadProgress();  // The waiting thread's, or null.
  CURL* handle_ = nullptr;
  curl_slist* lines_ = nullptr;  // The headers of the request.
  std::string ca_file_;          // HttpClientOptions::ca_file.
  std::string ca_variable_;      // HttpClientOptions::ca_variable.

  mutable Mutex mu_;
  CondVar over_changed_;
  bool over_ ABSL_GUARDED_BY(mu_) = false;
  bool abandoned_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  HttpResponse answer_ ABSL_GUARDED_BY(mu_);
  size_t header_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  bool headers_ended_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t refused_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // Body bytes of an answer that is not 2xx.
  bool enough_ ABSL_GUARDED_BY(mu_) = false;         // The rest of such a body is not read.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_TRANSFER_H_
