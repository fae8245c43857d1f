// Sources of credentials for tests. A source has a list of values. When the server has refused a
// value, the source gives the next value.
#ifndef SYSTOLE_TESTS_CORE_STORAGE_BUCKET_FAKE_CREDENTIALS_H_
#define SYSTOLE_TESTS_CORE_STORAGE_BUCKET_FAKE_CREDENTIALS_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/credentials/aws_credentials.h"
#include "core/credentials/google_credentials.h"
#include "core/http/http_message.h"

namespace systole {

// Thread-safe. A source without values stands for a process that has no credentials.
template <typename Source, typename Value>
class FakeCredentials final : public Source {
 public:
  explicit FakeCredentials(std::vector<Value> values) : values_(std::move(values)) {}

  absl::StatusOr<std::optional<Value>> Get(absl::Duration timeout) override
      ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    timeout_ = timeout;
    if (on_get_ != nullptr) on_get_();
    if (!error_.ok()) return error_;
    if (values_.empty()) return std::optional<Value>();
    return std::optional<Value>(values_.front());
  }
  void Refused(const std::optional<Value>& used) override ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    ++refused_;
    if (!error_after_refusal_.ok()) error_ = error_after_refusal_;
    if (!used.has_value()) values_ = late_values_;
    if (values_.size() > 1 && values_.front() == used) values_.erase(values_.begin());
  }
  void End() override {}

  void Fail(absl::Status error) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    error_ = std::move(error);
  }
  // After the next refusal, Get() fails with `error`.
  void FailAfterRefusal(absl::Status error) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    error_after_refusal_ = std::move(error);
  }
  // After a request without credentials was refused, the source has these values.
  void SetLateValues(std::vector<Value> values) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    late_values_ = std::move(values);
  }
  // Get() calls `on_get`.
  void OnGet(std::function<void()> on_get) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    on_get_ = std::move(on_get);
  }
  // The `timeout` of the last Get().
  absl::Duration timeout() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return timeout_;
  }
  int refused() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return refused_;
  }

 private:
  mutable Mutex mu_;
  std::vector<Value> values_ ABSL_GUARDED_BY(mu_);
  std::vector<Value> late_values_ ABSL_GUARDED_BY(mu_);
  absl::Status error_ ABSL_GUARDED_BY(mu_);
  absl::Status error_after_refusal_ ABSL_GUARDED_BY(mu_);
  std::function<void()> on_get_ ABSL_GUARDED_BY(mu_);
  absl::Duration timeout_ ABSL_GUARDED_BY(mu_);
  int refused_ ABSL_GUARDED_BY(mu_) = 0;
};

using FakeAwsCredentials = FakeCredentials<AwsCredentialSource, AwsCredentials>;
using FakeGoogleTokens = FakeCredentials<GoogleTokenSource, std::string>;

// The signature of requests that these credentials make.
inline AwsSigning SignedBy(const AwsCredentials& credentials,
                           const std::string& region = "us-east-1") {
  return {.access_key_id = credentials.access_key_id,
          .secret_access_key = credentials.secret_access_key,
          .session_token = credentials.session_token,
          .region = region,
          .service = "s3"};
}

// The signature of requests to Cloud Storage that these HMAC keys make.
inline AwsSigning SignedByHmac(const AwsCredentials& keys) {
  return {.access_key_id = keys.access_key_id,
          .secret_access_key = keys.secret_access_key,
          .region = "auto",
          .service = "storage",
          .scheme = SigningScheme::kGoogle};
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_STORAGE_BUCKET_FAKE_CREDENTIALS_H_
